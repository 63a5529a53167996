//! The last lines of a phase's log. The log has the commands with their environment, which may contain keys: these lines are
//! never shown. What the programs wrote is shown as plain text.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Component, Path, PathBuf},
};

use store::SavePath;

const MAX_BYTES: u64 = 16 << 10;
const MAX_LINES: usize = 14;
const MAX_LINE_CHARS: usize = 300;
/// What the loop writes before a command.
const COMMAND_PREFIX: &str = "== ";

/// Returns the last lines of a log; empty if it has none, cannot be read or is not one of the loop's logs.
pub(super) fn read(save_path: &SavePath, log: &Path) -> Vec<String> {
    let Some(path) = checked_path(save_path, log) else { return Vec::new() };
    let (bytes, is_cut) = read_end(&path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    // The first line may be the rest of a command.
    let lines: Vec<&str> = text.split('\n').skip(usize::from(is_cut)).collect();
    let start = lines.iter().rposition(|line| line.starts_with(COMMAND_PREFIX)).map_or(0, |line| line + 1);
    let written: Vec<String> =
        lines[start..].iter().map(|line| plain(line)).filter(|line| !line.trim().is_empty()).collect();
    written[written.len().saturating_sub(MAX_LINES)..].to_vec()
}

/// The state file could name any file of the machine: only those of the loop's own folder are read.
fn checked_path(save_path: &SavePath, log: &Path) -> Option<PathBuf> {
    let is_plain = log.components().all(|part| matches!(part, Component::Normal(_)));
    let folder = save_path.loop_directory().join("logs").canonicalize().ok()?;
    let path = save_path.root().join(log).canonicalize().ok()?;
    (is_plain && path.starts_with(folder) && path.is_file()).then_some(path)
}

/// Returns the end of a file, and whether something is before it.
fn read_end(path: &Path) -> std::io::Result<(Vec<u8>, bool)> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(MAX_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok((bytes, start > 0))
}

/// Returns what a terminal would show of a line: the last state of a progress bar, without colours.
fn plain(line: &str) -> String {
    let shown = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    let mut text = String::new();
    let mut letters = shown.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // A control sequence ends with a letter.
            '\u{1b}' => drop(letters.find(char::is_ascii_alphabetic)),
            '\t' => text.push(' '),
            letter if letter.is_control() => {}
            letter => text.push(letter),
        }
    }
    text.chars().take(MAX_LINE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn save_path(log: &[u8]) -> (tempfile::TempDir, SavePath) {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("loop/logs");
        std::fs::create_dir_all(&logs).unwrap();
        std::fs::write(logs.join("a.log"), log).unwrap();
        let save_path = SavePath::new(folder.path());
        (folder, save_path)
    }

    #[test]
    fn commands_with_their_environment_are_left_out() {
        let log = b"== 2026 KEY=secret train\nold\n== 2026 KEY=secret train\n\x1b[31mloss\x1b[0m 2\n\n 10%|\r 20%|\n";
        let (_folder, save_path) = save_path(log);
        assert_eq!(read(&save_path, Path::new("loop/logs/a.log")), ["loss 2", " 20%|"]);
        let long = [b"== 2026 KEY=", &[b'x'; MAX_BYTES as usize][..], b" train\nlast\n"].concat();
        std::fs::write(save_path.root().join("loop/logs/a.log"), long).unwrap();
        assert_eq!(read(&save_path, Path::new("loop/logs/a.log")), ["last"]);
    }

    #[test]
    fn only_logs_of_the_loop_are_read() {
        let (folder, save_path) = save_path(b"line\n");
        std::fs::write(folder.path().join("secret"), "secret\n").unwrap();
        std::os::unix::fs::symlink(folder.path().join("secret"), folder.path().join("loop/logs/link"))
            .unwrap();
        assert_eq!(read(&save_path, Path::new("loop/logs/a.log")), ["line"]);
        for path in [
            "secret",
            "loop/logs/../../secret",
            "/etc/passwd",
            "loop/logs/link",
            "loop/logs",
            "loop/logs/none",
        ] {
            assert!(read(&save_path, Path::new(path)).is_empty(), "{path}");
        }
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let lines: Vec<String> = (0..100).map(|number| format!("{number} {}\n", "x".repeat(1000))).collect();
        let (_folder, save_path) = save_path(lines.concat().as_bytes());
        let found = read(&save_path, Path::new("loop/logs/a.log"));
        assert_eq!(found.len(), MAX_LINES);
        assert!(found[MAX_LINES - 1].starts_with("99 x") && found[0].len() == MAX_LINE_CHARS);
    }
}
