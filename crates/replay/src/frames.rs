//! Frames as lines of JSON, in the block of a metadata record that belongs to a response.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use crate::exchange::{Direction, Frame, FrameData};

/// The content type of the metadata record with the frames of a response.
pub(crate) const FRAMES_TYPE: &str = "application/vnd.webgym.frames+jsonl";

/// One line: its time, direction and one kind of data.
#[derive(Serialize, Deserialize)]
struct Line {
    at_ms: f64,
    direction: Direction,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    binary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    close: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The number of bytes of the body that arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk: Option<u64>,
}

pub(crate) fn to_lines(frames: &[Frame]) -> Vec<u8> {
    let mut lines = Vec::new();
    for frame in frames {
        let mut line = Line {
            at_ms: frame.at_ms,
            direction: frame.direction,
            text: None,
            binary: None,
            close: None,
            reason: None,
            chunk: None,
        };
        match &frame.data {
            FrameData::Text(text) => line.text = Some(text.clone()),
            FrameData::Binary(bytes) => line.binary = Some(STANDARD.encode(bytes)),
            FrameData::Close { code, reason } => {
                (line.close, line.reason) = (Some(*code), Some(reason.clone()));
            }
            FrameData::Chunk(length) => line.chunk = Some(*length),
        }
        // Serializing into memory fails only for maps with keys that are not strings.
        if serde_json::to_writer(&mut lines, &line).is_ok() {
            lines.push(b'\n');
        }
    }
    lines
}

pub(crate) fn from_lines(lines: &[u8]) -> Result<Vec<Frame>, String> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .enumerate()
        .map(|(index, line)| parse(line).map_err(|error| format!("frame {index}: {error}")))
        .collect()
}

fn parse(line: &[u8]) -> Result<Frame, String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let data = if let Some(text) = line.text {
        FrameData::Text(text)
    } else if let Some(binary) = line.binary {
        FrameData::Binary(STANDARD.decode(binary).map_err(|error| error.to_string())?)
    } else if let Some(code) = line.close {
        FrameData::Close { code, reason: line.reason.unwrap_or_default() }
    } else if let Some(length) = line.chunk {
        FrameData::Chunk(length)
    } else {
        return Err("it has none of text, binary, close and chunk".into());
    };
    Ok(Frame { at_ms: line.at_ms, direction: line.direction, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_writing_and_reading() {
        let data = [
            FrameData::Text("a\nb".into()),
            FrameData::Binary(vec![0, 255]),
            FrameData::Close { code: 1000, reason: "done".into() },
            FrameData::Chunk(7),
        ];
        let frames: Vec<Frame> =
            data.into_iter().map(|data| Frame { at_ms: 1.5, direction: Direction::Received, data }).collect();
        assert_eq!(from_lines(&to_lines(&frames)).unwrap(), frames);
        assert!(from_lines(b"{\"at_ms\":1,\"direction\":\"sent\"}").unwrap_err().contains("none of"));
    }
}
