//! Translates calls of BrowserGym's action set. A `bid` is the number of a mark.

use proto::{
    Command,
    command::{Fill, MouseButton, Point},
};
use rollout::policy::MAX_WAIT_SECS;

use super::{
    Effect, Intent,
    python_call::{Call, Literal},
};

/// The actions that can be used.
const ACTIONS: &str = "noop, click, dblclick, hover, fill, clear, select_option, press, drag_and_drop, scroll, mouse_move, \
                       mouse_click, mouse_dblclick, mouse_down, mouse_up, mouse_drag_and_drop, keyboard_press, keyboard_type, \
                       keyboard_insert_text, keyboard_down, keyboard_up, goto, go_back, go_forward, new_tab, tab_close, tab_focus, \
                       send_msg_to_user, report_infeasible";

/// The pause of `noop` without a time, in milliseconds.
const DEFAULT_NOOP_MS: f64 = 1000.0;

/// Returns what the calls do. A message to the user ends the episode, so calls after it are not performed.
pub(super) fn effect(calls: &[Call]) -> Result<Effect, String> {
    let mut intents = Vec::new();
    for call in calls {
        match call.name.as_str() {
            "send_msg_to_user" if intents.is_empty() => return Ok(Effect::Answer(call.text(0, "text")?)),
            "report_infeasible" if intents.is_empty() => return Ok(Effect::Answer(call.text(0, "reason")?)),
            "send_msg_to_user" | "report_infeasible" => {
                return Err(format!("{} must be the only action of a step", call.name));
            }
            _ => intents.extend(call.intents()?),
        }
    }
    Ok(Effect::Act(intents))
}

impl Call {
    fn intents(&self) -> Result<Vec<Intent>, String> {
        let command = match self.name.as_str() {
            "noop" => {
                let millis = self.number_or(0, "wait_ms", DEFAULT_NOOP_MS)?;
                return Ok(vec![Intent::Wait { seconds: (millis / 1000.0).clamp(0.0, MAX_WAIT_SECS) }]);
            }
            "click" => return self.click(1),
            "dblclick" => return self.click(2),
            "drag_and_drop" => {
                return Ok(vec![Intent::DragElement {
                    from: self.id(0, "from_bid")?,
                    to: self.id(1, "to_bid")?,
                }]);
            }
            "tab_focus" => {
                let number = self.number(0, "index")?;
                return Ok(vec![Intent::FocusTab { number: number.max(0.0) as usize }]);
            }
            // A click moves the focus to the element.
            "press" => {
                let click = Command::ClickId { id: self.id(0, "bid")? };
                let press = Command::Keypress { keys: keys(&self.text(1, "key_comb")?) };
                return Ok(vec![Intent::Command(click), Intent::Command(press)]);
            }
            "hover" => Command::HoverId { id: self.id(0, "bid")? },
            "fill" => self.fill(&self.text(1, "value")?)?,
            "clear" => self.fill("")?,
            "select_option" => Command::SelectOption { id: self.id(0, "bid")? },
            "scroll" => {
                let (dx, dy) = (self.number(0, "delta_x")?, self.number(1, "delta_y")?);
                return Ok(vec![Intent::ScrollPage { dx, dy }]);
            }
            "mouse_move" => Command::MouseMove { point: self.point(0)? },
            "mouse_down" => Command::MouseDown { point: self.point(0)?, button: self.button(2)? },
            "mouse_up" => Command::MouseUp { point: self.point(0)?, button: self.button(2)? },
            "mouse_click" => super::click_at(self.point(0)?, self.button(2)?, 1, Vec::new()),
            "mouse_dblclick" => super::click_at(self.point(0)?, self.button(2)?, 2, Vec::new()),
            "mouse_drag_and_drop" => {
                let to = Point { x: self.number(2, "to_x")?, y: self.number(3, "to_y")? };
                let from = Point { x: self.number(0, "from_x")?, y: self.number(1, "from_y")? };
                super::drag_between(from, to)
            }
            "keyboard_press" => Command::Keypress { keys: keys(&self.text(0, "key")?) },
            "keyboard_type" | "keyboard_insert_text" => Command::TypeText { text: self.text(0, "text")? },
            "keyboard_down" => Command::KeyDown { key: self.text(0, "key")? },
            "keyboard_up" => Command::KeyUp { key: self.text(0, "key")? },
            "goto" => Command::VisitPage { url: rollout::address::with_scheme(&self.text(0, "url")?) },
            "go_back" => Command::Back,
            "go_forward" => Command::Forward,
            "new_tab" => Command::OpenTab { url: None },
            "tab_close" => Command::CloseTab { id: None },
            other => return Err(format!("unknown action {other:?}; accepted: {ACTIONS}")),
        };
        Ok(vec![Intent::Command(command)])
    }

    fn click(&self, clicks: u8) -> Result<Vec<Intent>, String> {
        let (id, button) = (self.id(0, "bid")?, self.button(1)?);
        let keys = match self.argument(2, "modifiers") {
            Some(Literal::List(names)) => names.iter().map(text_of).collect::<Option<Vec<_>>>(),
            Some(Literal::None) | None => Some(Vec::new()),
            Some(_) => None,
        };
        let keys = keys.ok_or_else(|| format!("{}: modifiers must be a list of keys", self.name))?;
        if clicks == 1 && button == MouseButton::Left && keys.is_empty() {
            return Ok(vec![Intent::Command(Command::ClickId { id })]);
        }
        Ok(vec![Intent::ClickElement { id, button, clicks, keys }])
    }

    fn fill(&self, value: &str) -> Result<Command, String> {
        let fill = Fill { value: value.to_owned(), press_enter: false, delete_existing: true };
        Ok(Command::FillId { id: self.id(0, "bid")?, fill })
    }

    fn missing(&self, name: &str, kind: &str) -> String {
        format!("{} needs the argument {name}: {kind}", self.name)
    }

    fn text(&self, position: usize, name: &str) -> Result<String, String> {
        self.argument(position, name).and_then(text_of).ok_or_else(|| self.missing(name, "a text in quotes"))
    }

    /// Returns the number of a mark, which models also write without quotes.
    fn id(&self, position: usize, name: &str) -> Result<String, String> {
        let id = match self.argument(position, name) {
            Some(Literal::Number(number)) if number.fract() == 0.0 => Some(format!("{number}")),
            other => other.and_then(text_of),
        };
        id.ok_or_else(|| self.missing(name, "the number of an element"))
    }

    fn number(&self, position: usize, name: &str) -> Result<f64, String> {
        match self.argument(position, name) {
            Some(Literal::Number(number)) => Ok(*number),
            _ => Err(self.missing(name, "a number")),
        }
    }

    fn number_or(&self, position: usize, name: &str, default: f64) -> Result<f64, String> {
        if self.argument(position, name).is_none() { Ok(default) } else { self.number(position, name) }
    }

    fn point(&self, position: usize) -> Result<Point, String> {
        Ok(Point { x: self.number(position, "x")?, y: self.number(position + 1, "y")? })
    }

    fn button(&self, position: usize) -> Result<MouseButton, String> {
        match self.argument(position, "button") {
            None | Some(Literal::None) => Ok(MouseButton::Left),
            Some(given) => text_of(given)
                .and_then(|name| name.parse().ok())
                .ok_or_else(|| format!("{}: button must be 'left', 'middle' or 'right'", self.name)),
        }
    }
}

fn text_of(literal: &Literal) -> Option<String> {
    match literal {
        Literal::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// Splits a combination of keys such as `Control+a` or `ControlOrMeta+Shift++`.
fn keys(combination: &str) -> Vec<String> {
    let (before, last) = match combination.strip_suffix("++") {
        Some(before) => (before, Some("+")),
        None => (combination, None),
    };
    let names = before.split('+').filter(|name| !name.is_empty()).chain(last);
    names.map(|name| if name == "ControlOrMeta" { "Control".to_owned() } else { name.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::python_call::parse_calls, *};

    fn intents(text: &str) -> Result<Vec<Intent>, String> {
        match effect(&parse_calls(text).unwrap())? {
            Effect::Act(intents) => Ok(intents),
            other => panic!("{other:?}"),
        }
    }

    fn command(text: &str) -> Command {
        match intents(text).unwrap().as_slice() {
            [Intent::Command(command)] => command.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn actions_become_commands() {
        let fill = |value: &str| Fill { value: value.into(), press_enter: false, delete_existing: true };
        let point = |x: f64, y: f64| Point { x, y };
        let cases = [
            ("click('12')", Command::ClickId { id: "12".into() }),
            ("click(12)", Command::ClickId { id: "12".into() }),
            ("click(bid='12', button='left')", Command::ClickId { id: "12".into() }),
            ("fill('3', 'x y')", Command::FillId { id: "3".into(), fill: fill("x y") }),
            ("clear('3')", Command::FillId { id: "3".into(), fill: fill("") }),
            ("hover('3')", Command::HoverId { id: "3".into() }),
            ("select_option('9', 'Blue')", Command::SelectOption { id: "9".into() }),
            ("goto('a.test')", Command::VisitPage { url: "http://a.test".into() }),
            ("go_back()", Command::Back),
            ("go_forward()", Command::Forward),
            ("keyboard_press('Control+a')", Command::Keypress { keys: vec!["Control".into(), "a".into()] }),
            ("keyboard_press('Control++')", Command::Keypress { keys: vec!["Control".into(), "+".into()] }),
            ("keyboard_type('hello')", Command::TypeText { text: "hello".into() }),
            ("mouse_move(1, 2)", Command::MouseMove { point: point(1.0, 2.0) }),
            ("new_tab()", Command::OpenTab { url: None }),
            ("tab_close()", Command::CloseTab { id: None }),
        ];
        for (text, wanted) in cases {
            let got = command(text);
            let is_goto = matches!(wanted, Command::VisitPage { .. });
            if is_goto {
                assert!(got.visited_url().is_some_and(|url| url.ends_with("://a.test")), "{got:?}");
            } else {
                assert_eq!(got, wanted, "{text}");
            }
        }
    }

    #[test]
    fn actions_without_a_command_become_intents() {
        let click = Intent::ClickElement {
            id: "4".into(),
            button: MouseButton::Right,
            clicks: 1,
            keys: vec!["Shift".into()],
        };
        assert_eq!(intents("click('4', button='right', modifiers=['Shift'])"), Ok(vec![click]));
        let double =
            Intent::ClickElement { id: "4".into(), button: MouseButton::Left, clicks: 2, keys: Vec::new() };
        assert_eq!(intents("dblclick('4')"), Ok(vec![double]));
        assert_eq!(intents("noop(500)"), Ok(vec![Intent::Wait { seconds: 0.5 }]));
        assert_eq!(intents("noop()"), Ok(vec![Intent::Wait { seconds: 1.0 }]));
        let drag = Intent::DragElement { from: "1".into(), to: "2".into() };
        assert_eq!(intents("drag_and_drop('1', '2')"), Ok(vec![drag]));
        assert_eq!(intents("scroll(0, 300)"), Ok(vec![Intent::ScrollPage { dx: 0.0, dy: 300.0 }]));
        assert_eq!(intents("tab_focus(1)"), Ok(vec![Intent::FocusTab { number: 1 }]));
        assert_eq!(intents("press('7', 'Enter')").unwrap().len(), 2);
        assert_eq!(intents("click('1')\nclick('2')").unwrap().len(), 2);
    }

    #[test]
    fn unusable_arguments_name_what_is_missing() {
        assert_eq!(intents("fill('3')").unwrap_err(), "fill needs the argument value: a text in quotes");
        assert!(intents("click()").unwrap_err().contains("bid"));
        assert!(intents("click('1', button='side')").unwrap_err().contains("'left', 'middle' or 'right'"));
        assert!(intents("explode()").unwrap_err().contains("accepted: noop, click"));
        assert!(effect(&parse_calls("click('1')\nsend_msg_to_user('x')").unwrap()).is_err());
    }
}
