//! Lets the crate compile before the pages are built: creates an empty folder for them. The server then shows how to build
//! them. Warns if the pages are older than their sources.

use std::{fs, path::Path, time::SystemTime};

fn main() {
    println!("cargo:rerun-if-changed=ui/dist");
    println!("cargo:rerun-if-changed=ui/src");
    if let Err(error) = fs::create_dir_all("ui/dist") {
        println!("cargo:warning=cannot create crates/web/ui/dist: {error}");
    }
    let built = latest_change(Path::new("ui/dist"));
    if built.is_some() && latest_change(Path::new("ui/src")) > built {
        println!(
            "cargo:warning=the pages of monitor and viewer are older than their sources; build them with: make web"
        );
    }
}

/// Returns when a file below a folder last changed; `None` if it has no files.
fn latest_change(folder: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let changes = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        if metadata.is_dir() { latest_change(&entry.path()) } else { metadata.modified().ok() }
    });
    changes.max()
}
