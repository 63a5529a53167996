//! Runs Python for tests that read our files with PyTorch, pyarrow or DuckDB.

#![allow(
    unreachable_pub,
    dead_code,
    clippy::expect_used,
    reason = "shared by several test programs, which use different parts of it"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Stubs of the five classes of the Python system, sufficient for pickling.
const STUB_CLASSES: &str = "\
class Task: pass
class Observation: pass
class Action: pass
class Response: pass
class Reward: pass
";

/// A Python that can import `module`: the one in `WEBGYM_PYTHON`, in the `.venv` of the workspace, or a system Python.
pub fn with_module(module: &str) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // A virtual environment finds its packages by the path of its executable, so resolve links and `..`.
    let workspace = workspace.canonicalize().expect("the workspace exists");
    let named = std::env::var_os("WEBGYM_PYTHON").map(PathBuf::from);
    let candidates = named.into_iter().chain([
        workspace.join(".venv/bin/python"),
        "/usr/bin/python3".into(),
        "python3".into(),
    ]);
    for python in candidates {
        let import = Command::new(&python).args(["-c", &format!("import {module}")]).output();
        if import.is_ok_and(|output| output.status.success()) {
            return python;
        }
    }
    panic!("no Python found that can import {module}; run `make setup` or set WEBGYM_PYTHON");
}

/// Runs a script with the stub classes on its path and returns its output.
pub fn run(python: &Path, script: &str, arguments: &[&Path]) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let package = directory.path().join("webgym/data");
    std::fs::create_dir_all(&package).expect("a package directory");
    for (name, content) in [("../__init__.py", ""), ("__init__.py", ""), ("components.py", STUB_CLASSES)] {
        std::fs::write(package.join(name), content).expect("a stub module");
    }
    let output = Command::new(python)
        .args(["-c", script])
        .args(arguments)
        .env("PYTHONPATH", directory.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("Python starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Python failed:\n{errors}");
    String::from_utf8(output.stdout).expect("Python prints UTF-8")
}
