//! The dialects and their versions.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::cut;

/// A format of computer actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    #[serde(rename = "openai")]
    OpenAi,
    Anthropic,
    Gemini,
    Qwen,
    UiTars,
}

/// A version of a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    OpenAiPreview,
    OpenAiComputer,
    Computer20241022,
    Computer20250124,
    Computer20251124,
    ComputerToolset,
    BrowserToolset,
    GeminiLegacy,
    GeminiCurrent,
    Qwen25,
    Qwen3,
    Qwen35,
    UiTars10,
    UiTars15,
    Doubao,
    UiTars2,
}

impl Dialect {
    pub const ALL: [Self; 5] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Qwen, Self::UiTars];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::UiTars => "ui_tars",
        }
    }

    pub fn versions(self) -> impl Iterator<Item = Version> {
        Version::ALL.into_iter().filter(move |version| version.dialect() == self)
    }

    /// Finds a version of this dialect by its name.
    pub fn version(self, name: &str) -> Result<Version, String> {
        self.versions().find(|version| version.as_str() == name).ok_or_else(|| {
            let accepted: Vec<&str> = self.versions().map(Version::as_str).collect();
            format!(
                "{:?} is not a version of {}; accepted: {}",
                cut(name),
                self.as_str(),
                accepted.join(", ")
            )
        })
    }
}

impl FromStr for Dialect {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == text).ok_or_else(|| {
            let accepted = Self::ALL.map(Self::as_str).join(", ");
            format!("{:?} is not a dialect; accepted: {accepted}", cut(text))
        })
    }
}

impl Version {
    pub const ALL: [Self; 16] = [
        Self::OpenAiPreview,
        Self::OpenAiComputer,
        Self::Computer20241022,
        Self::Computer20250124,
        Self::Computer20251124,
        Self::ComputerToolset,
        Self::BrowserToolset,
        Self::GeminiLegacy,
        Self::GeminiCurrent,
        Self::Qwen25,
        Self::Qwen3,
        Self::Qwen35,
        Self::UiTars10,
        Self::UiTars15,
        Self::Doubao,
        Self::UiTars2,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiPreview => "computer_use_preview",
            Self::OpenAiComputer => "computer",
            Self::Computer20241022 => "computer_20241022",
            Self::Computer20250124 => "computer_20250124",
            Self::Computer20251124 => "computer_20251124",
            Self::ComputerToolset => "computer_toolset_20260801",
            Self::BrowserToolset => "browser_toolset_20260801",
            Self::GeminiLegacy => "legacy",
            Self::GeminiCurrent => "current",
            Self::Qwen25 => "qwen2.5",
            Self::Qwen3 => "qwen3",
            Self::Qwen35 => "qwen3.5",
            Self::UiTars10 => "1.0",
            Self::UiTars15 => "1.5",
            Self::Doubao => "doubao",
            Self::UiTars2 => "2",
        }
    }

    pub const fn dialect(self) -> Dialect {
        match self {
            Self::OpenAiPreview | Self::OpenAiComputer => Dialect::OpenAi,
            Self::Computer20241022
            | Self::Computer20250124
            | Self::Computer20251124
            | Self::ComputerToolset
            | Self::BrowserToolset => Dialect::Anthropic,
            Self::GeminiLegacy | Self::GeminiCurrent => Dialect::Gemini,
            Self::Qwen25 | Self::Qwen3 | Self::Qwen35 => Dialect::Qwen,
            Self::UiTars10 | Self::UiTars15 | Self::Doubao | Self::UiTars2 => Dialect::UiTars,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_serde_form() {
        for dialect in Dialect::ALL {
            assert_eq!(serde_json::to_value(dialect).unwrap(), dialect.as_str());
            assert_eq!(dialect.as_str().parse(), Ok(dialect));
            for version in dialect.versions() {
                assert_eq!(dialect.version(version.as_str()), Ok(version));
            }
        }
    }
}
