//! The keys of a US keyboard: their names in `keypress` and their form in the protocol.

/// One key, as the protocol describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) code: String,
    pub(crate) virtual_code: u32,
    /// The text that the key types, if any.
    pub(crate) text: Option<String>,
    pub(crate) modifier: Option<Modifier>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modifier {
    Alt,
    Control,
    Meta,
    Shift,
}

impl Modifier {
    /// The bit of this modifier in the protocol's `modifiers` field.
    pub(crate) fn bit(self) -> u32 {
        match self {
            Self::Alt => 1,
            Self::Control => 2,
            Self::Meta => 4,
            Self::Shift => 8,
        }
    }
}

/// Protocol name, code, virtual key code.
const NAMED_KEYS: &[(&str, &str, u32)] = &[
    ("Alt", "AltLeft", 18),
    ("ArrowDown", "ArrowDown", 40),
    ("ArrowLeft", "ArrowLeft", 37),
    ("ArrowRight", "ArrowRight", 39),
    ("ArrowUp", "ArrowUp", 38),
    ("Backspace", "Backspace", 8),
    ("CapsLock", "CapsLock", 20),
    ("Control", "ControlLeft", 17),
    ("ContextMenu", "ContextMenu", 93),
    ("Delete", "Delete", 46),
    ("End", "End", 35),
    ("Enter", "Enter", 13),
    ("Escape", "Escape", 27),
    ("Home", "Home", 36),
    ("Insert", "Insert", 45),
    ("Meta", "MetaLeft", 91),
    ("NumLock", "NumLock", 144),
    ("PageDown", "PageDown", 34),
    ("PageUp", "PageUp", 33),
    ("Pause", "Pause", 19),
    ("PrintScreen", "PrintScreen", 44),
    ("ScrollLock", "ScrollLock", 145),
    ("Shift", "ShiftLeft", 16),
    ("Tab", "Tab", 9),
];

/// Other common names and the protocol names they stand for.
const ALIASES: &[(&str, &str)] = &[
    ("cmd", "Meta"),
    ("command", "Meta"),
    ("super", "Meta"),
    ("win", "Meta"),
    ("windows", "Meta"),
    ("ctrl", "Control"),
    ("option", "Alt"),
    ("esc", "Escape"),
    ("return", "Enter"),
    ("del", "Delete"),
    ("up", "ArrowUp"),
    ("down", "ArrowDown"),
    ("left", "ArrowLeft"),
    ("right", "ArrowRight"),
];

/// Unshifted character, shifted character, code, virtual key code.
const SYMBOLS: &[(char, char, &str, u32)] = &[
    (' ', ' ', "Space", 32),
    ('0', ')', "Digit0", 48),
    ('1', '!', "Digit1", 49),
    ('2', '@', "Digit2", 50),
    ('3', '#', "Digit3", 51),
    ('4', '$', "Digit4", 52),
    ('5', '%', "Digit5", 53),
    ('6', '^', "Digit6", 54),
    ('7', '&', "Digit7", 55),
    ('8', '*', "Digit8", 56),
    ('9', '(', "Digit9", 57),
    ('-', '_', "Minus", 189),
    ('=', '+', "Equal", 187),
    ('[', '{', "BracketLeft", 219),
    (']', '}', "BracketRight", 221),
    ('\\', '|', "Backslash", 220),
    (';', ':', "Semicolon", 186),
    ('\'', '"', "Quote", 222),
    ('`', '~', "Backquote", 192),
    (',', '<', "Comma", 188),
    ('.', '>', "Period", 190),
    ('/', '?', "Slash", 191),
];

impl Key {
    /// Parses a key name of `keypress`: a W3C name or an alias in any case, or a single character.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let mut characters = name.chars();
        if let (Some(only), None) = (characters.next(), characters.next()) {
            return Some(Self::from_char(only).unwrap_or_else(|| Self::without_code(only)));
        }
        let name = name.trim();
        if name.eq_ignore_ascii_case("space") {
            return Self::from_char(' ');
        }
        let alias =
            ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map_or(name, |(_, name)| name);
        let named = NAMED_KEYS.iter().find(|(key, ..)| key.eq_ignore_ascii_case(alias));
        if let Some((key, code, virtual_code)) = named {
            return Some(Self::special(key, code, *virtual_code));
        }
        function_key(alias)
    }

    /// Returns the key that types a character, if a US keyboard has one.
    pub(crate) fn from_char(wanted: char) -> Option<Self> {
        let typed = |code: String, virtual_code| Self {
            name: wanted.to_string(),
            code,
            virtual_code,
            text: Some(wanted.to_string()),
            modifier: None,
        };
        if wanted == '\n' || wanted == '\r' {
            return Some(Self::special("Enter", "Enter", 13));
        }
        if wanted == '\t' {
            return Some(Self::special("Tab", "Tab", 9));
        }
        if wanted.is_ascii_alphabetic() {
            let upper = wanted.to_ascii_uppercase();
            return Some(typed(format!("Key{upper}"), upper as u32));
        }
        let symbol = SYMBOLS.iter().find(|(plain, shifted, ..)| *plain == wanted || *shifted == wanted)?;
        Some(typed(symbol.2.to_owned(), symbol.3))
    }

    fn special(key: &str, code: &str, virtual_code: u32) -> Self {
        let modifier = match key {
            "Alt" => Some(Modifier::Alt),
            "Control" => Some(Modifier::Control),
            "Meta" => Some(Modifier::Meta),
            "Shift" => Some(Modifier::Shift),
            _ => None,
        };
        let text = (key == "Enter").then(|| "\r".to_owned());
        Self { name: key.to_owned(), code: code.to_owned(), virtual_code, text, modifier }
    }

    /// A key for a character that a US keyboard lacks.
    fn without_code(character: char) -> Self {
        let text = character.to_string();
        Self { name: text.clone(), code: String::new(), virtual_code: 0, text: Some(text), modifier: None }
    }

    /// Returns the key as it acts while modifiers are held: Shift changes its text, other modifiers suppress it.
    pub(crate) fn with_modifiers(mut self, modifiers: u32) -> Self {
        let shift = modifiers & Modifier::Shift.bit() != 0;
        if let Some(only) = self.name.chars().next().filter(|_| shift && self.name.chars().count() == 1) {
            let shifted =
                SYMBOLS.iter().find(|(plain, ..)| *plain == only).map_or(only.to_ascii_uppercase(), |s| s.1);
            self.name = shifted.to_string();
            self.text = self.text.map(|_| shifted.to_string());
        }
        if modifiers & !Modifier::Shift.bit() != 0 {
            self.text = None;
        }
        self
    }
}

fn function_key(name: &str) -> Option<Key> {
    let number: u32 =
        name.strip_prefix(['f', 'F'])?.parse().ok().filter(|number| (1..=24).contains(number))?;
    let name = format!("F{number}");
    Some(Key { name: name.clone(), code: name, virtual_code: 111 + number, text: None, modifier: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_contract_key_names_are_known() {
        let names = "alt arrowdown arrowleft arrowright arrowup backspace capslock cmd ctrl delete end enter esc home insert \
                     option pagedown pageup shift space super tab win / \\ Enter F5 PageDown a Z ! é";
        for name in names.split(' ') {
            assert!(Key::from_name(name).is_some(), "{name}");
            assert!(name.len() < 2 || Key::from_name(&name.to_uppercase()).is_some(), "{name}");
        }
        assert_eq!(Key::from_name("nosuchkey"), None);
        assert_eq!(Key::from_name(""), None);
        assert_eq!(Key::from_name("F25"), None);
    }

    #[test]
    fn modifiers_change_the_typed_text() {
        let a = Key::from_name("a").unwrap();
        assert_eq!(a.clone().with_modifiers(8).text.as_deref(), Some("A"));
        assert_eq!(a.with_modifiers(2).text, None);
        assert_eq!(Key::from_name("1").unwrap().with_modifiers(8).text.as_deref(), Some("!"));
    }
}
