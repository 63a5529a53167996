//! Finds a Chromium to drive: what the user named, else the lightest that is installed.

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

/// Which of the two shapes of Chromium an executable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrowserKind {
    /// `chromium-headless-shell`: half the memory, contexts four times cheaper.
    HeadlessShell,
    /// Chromium or Chrome, run in new headless mode.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    pub path: PathBuf,
    pub kind: BrowserKind,
}

#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error(
        "no Chromium found. Run scripts/setup, or install one (Debian/Ubuntu: apt-get install chromium-headless-shell), \
         or name one with --chromium PATH or the CHROME environment variable"
    )]
    None,
    #[error("{0} is not a program that can be run; name a Chromium or chromium-headless-shell executable")]
    NotExecutable(PathBuf),
}

const SHELLS: &[&str] = &["chromium-headless-shell", "chrome-headless-shell", "headless_shell"];
const FULL: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
const ELSEWHERE: &[&str] = &["/opt/google/chrome/chrome", "/snap/bin/chromium"];

impl Executable {
    /// Judges by name; a wrapper script named otherwise counts as the full browser.
    pub fn at(path: impl Into<PathBuf>) -> Result<Self, FindError> {
        let path = path.into();
        if !executable(&path) {
            return Err(FindError::NotExecutable(path));
        }
        let name = path.file_name().map(|name| name.to_string_lossy().replace('_', "-")).unwrap_or_default();
        let kind =
            if name.contains("headless-shell") { BrowserKind::HeadlessShell } else { BrowserKind::Full };
        Ok(Self { path, kind })
    }
}

/// The browser to use: `named` if given, else `$CHROME`, else the best one installed.
pub fn find(named: Option<&Path>) -> Result<Executable, FindError> {
    if let Some(path) = named {
        return Executable::at(on_path(path));
    }
    if let Some(path) = env::var_os("CHROME").filter(|value| !value.is_empty()) {
        return Executable::at(on_path(Path::new(&path)));
    }
    find_all().into_iter().next().ok_or(FindError::None)
}

/// Every browser on this machine, best first.
pub fn find_all() -> Vec<Executable> {
    let cached = playwright_cache();
    let cached_of = |kind| cached.iter().filter(move |found| found.kind == kind).cloned();
    let named = |names: &[&str]| names.iter().filter_map(|name| search_path(name)).collect::<Vec<_>>();
    let plain = |paths: Vec<PathBuf>| paths.into_iter().filter_map(|path| Executable::at(path).ok());
    let mut all: Vec<Executable> = plain(named(SHELLS)).collect();
    all.extend(cached_of(BrowserKind::HeadlessShell));
    all.extend(plain(named(FULL)));
    all.extend(plain(ELSEWHERE.iter().map(PathBuf::from).collect()));
    all.extend(cached_of(BrowserKind::Full));
    all
}

fn on_path(path: &Path) -> PathBuf {
    let bare = path.components().count() == 1;
    bare.then(|| search_path(&path.to_string_lossy())).flatten().unwrap_or_else(|| path.to_owned())
}

fn search_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(name)).find(|candidate| executable(candidate))
}

/// Browsers that Playwright has downloaded, newest build first.
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
    candidates.filter_map(|path| Executable::at(path).ok()).collect()
}

fn build_number(path: &Path) -> u64 {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_browser_must_be_runnable() {
        let error = find(Some(Path::new("/nowhere/chromium"))).unwrap_err();
        assert!(error.to_string().contains("/nowhere/chromium"), "{error}");
    }

    #[test]
    fn the_kind_is_read_off_the_name() {
        let dir = tempfile::tempdir().unwrap();
        for (name, kind) in [
            ("chromium", BrowserKind::Full),
            ("chrome-headless-shell", BrowserKind::HeadlessShell),
            ("headless_shell", BrowserKind::HeadlessShell),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            assert_eq!(Executable::at(&path).unwrap().kind, kind, "{name}");
        }
    }
}
