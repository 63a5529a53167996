//! Finds a Chromium executable: the one the user specified, else the most lightweight one that is installed.

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

/// Which of the two builds of Chromium an executable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrowserKind {
    /// `chromium-headless-shell`: needs half the memory and creates contexts four times faster.
    HeadlessShell,
    /// Chromium or Chrome, run in the new headless mode.
    Full,
}

impl fmt::Display for BrowserKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HeadlessShell => "headless shell",
            Self::Full => "Chromium",
        })
    }
}

/// A browser executable and its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    pub path: PathBuf,
    pub kind: BrowserKind,
}

#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error(
        "no Chromium found. Install one (Debian/Ubuntu: apt-get install chromium-headless-shell), \
         or specify one with --chromium PATH or the CHROME environment variable"
    )]
    None,
    #[error("{0} is not an executable program; specify a Chromium or chromium-headless-shell executable")]
    NotExecutable(PathBuf),
}

const SHELL_NAMES: &[&str] = &["chromium-headless-shell", "chrome-headless-shell", "headless_shell"];
const FULL_NAMES: &[&str] =
    &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
/// Where full browsers are installed outside `$PATH`.
const FULL_PATHS: &[&str] = &["/opt/google/chrome/chrome", "/snap/bin/chromium"];

impl Executable {
    /// Detects the kind by the file name; a wrapper script with another name counts as the full browser.
    pub fn from_path(path: impl Into<PathBuf>) -> Result<Self, FindError> {
        let path = path.into();
        if !is_executable(&path) {
            return Err(FindError::NotExecutable(path));
        }
        let name = path.file_name().map(|name| name.to_string_lossy().replace('_', "-")).unwrap_or_default();
        let kind =
            if name.contains("headless-shell") { BrowserKind::HeadlessShell } else { BrowserKind::Full };
        Ok(Self { path, kind })
    }
}

/// Returns the browser to use: `path` if given, else `$CHROME`, else the best one that is installed.
pub fn find_browser(path: Option<&Path>) -> Result<Executable, FindError> {
    if let Some(path) = path {
        return Executable::from_path(resolve(path));
    }
    if let Some(path) = env::var_os("CHROME").filter(|value| !value.is_empty()) {
        return Executable::from_path(resolve(Path::new(&path)));
    }
    find_browsers().into_iter().next().ok_or(FindError::None)
}

/// Returns all browsers on this machine, best first.
pub fn find_browsers() -> Vec<Executable> {
    let cached = playwright_cache();
    let cached_of = |kind| cached.iter().filter(move |found| found.kind == kind).cloned();
    let in_path = |names: &[&str]| names.iter().filter_map(|name| search_path(name)).collect::<Vec<_>>();
    let usable = |paths: Vec<PathBuf>| paths.into_iter().filter_map(|path| Executable::from_path(path).ok());
    let mut all: Vec<Executable> = usable(in_path(SHELL_NAMES)).collect();
    all.extend(cached_of(BrowserKind::HeadlessShell));
    all.extend(usable(in_path(FULL_NAMES)));
    all.extend(usable(FULL_PATHS.iter().map(PathBuf::from).collect()));
    all.extend(cached_of(BrowserKind::Full));
    all
}

/// Looks up a bare program name in `$PATH`; other paths are returned unchanged.
fn resolve(path: &Path) -> PathBuf {
    let is_bare_name = path.components().count() == 1;
    is_bare_name.then(|| search_path(&path.to_string_lossy())).flatten().unwrap_or_else(|| path.to_owned())
}

fn search_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(name)).find(|candidate| is_executable(candidate))
}

/// Returns the browsers that Playwright has downloaded, newest build first.
fn playwright_cache() -> Vec<Executable> {
    let root = env::var_os("PLAYWRIGHT_BROWSERS_PATH")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/ms-playwright")));
    let Some(builds) = root.and_then(|root| root.read_dir().ok()) else { return Vec::new() };
    let mut builds: Vec<PathBuf> = builds.flatten().map(|entry| entry.path()).collect();
    builds.sort_by_key(|path| std::cmp::Reverse(build_number(path)));
    let inside = [
        "chrome-headless-shell-linux64/chrome-headless-shell",
        "chrome-linux/headless_shell",
        "chrome-linux64/chrome",
        "chrome-linux/chrome",
    ];
    let candidates = builds.iter().flat_map(|build| inside.iter().map(move |path| build.join(path)));
    candidates.filter_map(|path| Executable::from_path(path).ok()).collect()
}

fn build_number(path: &Path) -> u64 {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_executable_is_an_error() {
        let error = find_browser(Some(Path::new("/nowhere/chromium"))).unwrap_err();
        assert!(error.to_string().contains("/nowhere/chromium"), "{error}");
    }

    #[test]
    fn file_name_determines_the_kind() {
        let dir = tempfile::tempdir().unwrap();
        for (name, kind) in [
            ("chromium", BrowserKind::Full),
            ("chrome-headless-shell", BrowserKind::HeadlessShell),
            ("headless_shell", BrowserKind::HeadlessShell),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            assert_eq!(Executable::from_path(&path).unwrap().kind, kind, "{name}");
        }
    }
}
