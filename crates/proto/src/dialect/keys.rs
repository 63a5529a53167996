//! The key names of all dialects: those of X11 (Anthropic), pyautogui (Qwen, UI-TARS), Playwright and the DOM.

use super::Failure;
use crate::{args::split_chord, text::cut};

/// Names that `keypress` does not know, in lower case, and the names it knows.
const ALIASES: &[(&str, &str)] = &[
    ("add", "+"),
    ("alt_l", "alt"),
    ("alt_r", "alt"),
    ("altleft", "alt"),
    ("altright", "alt"),
    ("apostrophe", "'"),
    ("arrow_down", "ArrowDown"),
    ("arrow_left", "ArrowLeft"),
    ("arrow_right", "ArrowRight"),
    ("arrow_up", "ArrowUp"),
    ("asterisk", "*"),
    ("back_space", "Backspace"),
    ("backslash", "\\"),
    ("bracketleft", "["),
    ("bracketright", "]"),
    ("caps_lock", "CapsLock"),
    ("comma", ","),
    ("command", "meta"),
    ("control", "ctrl"),
    ("control_l", "ctrl"),
    ("control_r", "ctrl"),
    ("controlleft", "ctrl"),
    ("controlright", "ctrl"),
    ("ctrlleft", "ctrl"),
    ("ctrlright", "ctrl"),
    ("decimal", "."),
    ("divide", "/"),
    ("equal", "="),
    ("equals", "="),
    ("grave", "`"),
    ("kp_add", "+"),
    ("kp_begin", "5"),
    ("kp_decimal", "."),
    ("kp_delete", "Delete"),
    ("kp_divide", "/"),
    ("kp_down", "ArrowDown"),
    ("kp_end", "End"),
    ("kp_enter", "Enter"),
    ("kp_home", "Home"),
    ("kp_left", "ArrowLeft"),
    ("kp_multiply", "*"),
    ("kp_next", "PageDown"),
    ("kp_prior", "PageUp"),
    ("kp_right", "ArrowRight"),
    ("kp_subtract", "-"),
    ("kp_up", "ArrowUp"),
    ("menu", "ContextMenu"),
    ("meta_l", "meta"),
    ("meta_r", "meta"),
    ("minus", "-"),
    ("multiply", "*"),
    ("next", "PageDown"),
    ("num_lock", "NumLock"),
    ("numpadadd", "+"),
    ("numpaddecimal", "."),
    ("numpaddivide", "/"),
    ("numpadenter", "Enter"),
    ("numpadmultiply", "*"),
    ("numpadsubtract", "-"),
    ("optionleft", "alt"),
    ("optionright", "alt"),
    ("page_down", "PageDown"),
    ("page_up", "PageUp"),
    ("page down", "PageDown"),
    ("page up", "PageUp"),
    ("period", "."),
    ("pgdn", "PageDown"),
    ("pgup", "PageUp"),
    ("plus", "+"),
    ("print", "PrintScreen"),
    ("print_screen", "PrintScreen"),
    ("printscr", "PrintScreen"),
    ("prior", "PageUp"),
    ("prntscrn", "PrintScreen"),
    ("prtsc", "PrintScreen"),
    ("prtscr", "PrintScreen"),
    ("quotedbl", "\""),
    ("return", "Enter"),
    ("scroll_lock", "ScrollLock"),
    ("semicolon", ";"),
    ("separator", ","),
    ("shift_l", "shift"),
    ("shift_r", "shift"),
    ("shiftleft", "shift"),
    ("shiftright", "shift"),
    ("slash", "/"),
    ("spacebar", "space"),
    ("subtract", "-"),
    ("super", "meta"),
    ("super_l", "meta"),
    ("super_r", "meta"),
    ("underscore", "_"),
    ("win", "meta"),
    ("windows", "meta"),
    ("winleft", "meta"),
    ("winright", "meta"),
    ("cmd", "meta"),
    ("option", "alt"),
    ("esc", "Escape"),
    ("del", "Delete"),
    ("up", "ArrowUp"),
    ("down", "ArrowDown"),
    ("left", "ArrowLeft"),
    ("right", "ArrowRight"),
];

/// Names that `keypress` knows, as it writes them.
const NAMES: &[&str] = &[
    "alt",
    "ctrl",
    "meta",
    "shift",
    "space",
    "ArrowDown",
    "ArrowLeft",
    "ArrowRight",
    "ArrowUp",
    "Backspace",
    "CapsLock",
    "ContextMenu",
    "Delete",
    "End",
    "Enter",
    "Escape",
    "Home",
    "Insert",
    "NumLock",
    "PageDown",
    "PageUp",
    "Pause",
    "PrintScreen",
    "ScrollLock",
    "Tab",
];

pub(super) const MODIFIERS: [&str; 4] = ["ctrl", "shift", "alt", "meta"];

/// The most keys of a chord.
const MAX_KEYS: usize = 10;

/// Translates the name of one key.
fn key(name: &str) -> Option<String> {
    let mut characters = name.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return (only == ' ')
            .then(|| "space".to_owned())
            .or_else(|| (!only.is_control()).then(|| only.to_string()));
    }
    let name = name.trim().to_ascii_lowercase();
    if let Some((_, known)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
        return Some((*known).to_owned());
    }
    if let Some(known) = NAMES.iter().find(|known| known.eq_ignore_ascii_case(&name)) {
        return Some((*known).to_owned());
    }
    let digit = name.strip_prefix("kp_").or(name.strip_prefix("numpad")).or(name.strip_prefix("num"));
    if let Some(digit) = digit.filter(|digit| digit.len() == 1 && digit.as_bytes()[0].is_ascii_digit()) {
        return Some(digit.to_owned());
    }
    let number: u8 = name.strip_prefix('f')?.parse().ok()?;
    (1..=24).contains(&number).then(|| format!("F{number}"))
}

/// Translates the keys of a chord. `argument` is named in errors.
pub(super) fn chord<'a>(
    argument: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<String>, Failure> {
    let mut keys = Vec::new();
    for name in names.into_iter().flat_map(split_chord) {
        let known = key(&name).ok_or_else(|| {
            Failure::Invalid(format!(
                "{argument}: {:?} is not a key; use a single character or a name such as enter, ctrl, shift, alt, escape, down, \
                 page_up, f5",
                cut(&name)
            ))
        })?;
        keys.push(known);
    }
    if keys.is_empty() || keys.len() > MAX_KEYS {
        return Err(Failure::Invalid(format!(
            "{argument} has {} keys; it must have 1 to {MAX_KEYS}",
            keys.len()
        )));
    }
    // Models write "CTRL", "A" for Ctrl+A. Only Shift makes a letter of a chord a capital.
    let modified = keys.iter().any(|key| MODIFIERS.contains(&key.as_str()));
    if modified && !keys.iter().any(|key| key == "shift") {
        for key in keys.iter_mut().filter(|key| key.len() == 1) {
            key.make_ascii_lowercase();
        }
    }
    Ok(keys)
}

/// Translates modifier keys that are held during a mouse action.
pub(super) fn modifiers<'a>(
    argument: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<String>, Failure> {
    let mut names = names.into_iter().filter(|name| !name.trim().is_empty()).peekable();
    if names.peek().is_none() {
        return Ok(Vec::new());
    }
    let keys = chord(argument, names)?;
    match keys.iter().find(|key| !MODIFIERS.contains(&key.as_str())) {
        Some(other) => Err(Failure::Invalid(format!(
            "{argument}: {other:?} is not a modifier; a mouse action accepts {}",
            MODIFIERS.join(", ")
        ))),
        None => Ok(keys),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_dialect_are_known() {
        let cases = [
            ("CTRL", "ctrl"),
            ("Control_L", "ctrl"),
            ("Return", "Enter"),
            ("Page_Up", "PageUp"),
            ("PGDN", "PageDown"),
            ("BackSpace", "Backspace"),
            ("KP_0", "0"),
            ("KP_Enter", "Enter"),
            ("Prior", "PageUp"),
            ("Super_L", "meta"),
            ("winleft", "meta"),
            ("num7", "7"),
            ("f12", "F12"),
            ("equals", "="),
            ("plus", "+"),
            ("ArrowDown", "ArrowDown"),
            ("a", "a"),
            ("é", "é"),
            (" ", "space"),
        ];
        for (name, expected) in cases {
            assert_eq!(key(name).as_deref(), Some(expected), "{name}");
        }
        for unknown in ["f25", "hyperdrive", "", "\u{7}", "num77"] {
            assert_eq!(key(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn chords_are_translated_together() {
        let keys = |names: &[&str]| chord("keys", names.iter().copied()).map(|keys| keys.join(" "));
        assert_eq!(keys(&["CTRL", "A"]), Ok("ctrl a".into()));
        assert_eq!(keys(&["ctrl+shift+T"]), Ok("ctrl shift T".into()));
        assert_eq!(keys(&["A"]), Ok("A".into()));
        assert_eq!(keys(&["ctrl++"]), Ok("ctrl +".into()));
        assert!(keys(&[]).is_err() && keys(&["a"; 11]).is_err());
        let error = modifiers("keys", ["ctrl", "a"]).unwrap_err().to_string();
        assert!(error.contains("keys: \"a\" is not a modifier"), "{error}");
        assert_eq!(modifiers("keys", [""]), Ok(Vec::new()));
    }
}
