//! MiniWoB: the pages of the PyPI package `miniwob`. Each page is a task; its setup starts an episode with a seed, and its
//! own reward is the score.

use std::path::{Path, PathBuf};

use serde_json::{Map, json};

use super::{
    benchmark::{ImportError, Imported},
    task_draft::TaskDraft,
};

/// How the pages become tasks.
#[derive(Clone, Debug)]
pub struct MiniwobOptions {
    /// Where the folder with the pages is served.
    pub base_url: String,
    /// Episodes with different seeds of each page.
    pub seeds: u32,
    /// Only these pages; all if empty.
    pub pages: Vec<String>,
    /// The page's own limit on an episode. Its default, 10 s for most, is made for scripts.
    pub episode_seconds: u32,
}

const INSTRUCTION: &str =
    "Do what the instruction at the top of the page says. When you have done it, answer \"done\".";

/// The page's reward from -1 to 1 as a score. On another page, the agent has left the task.
const SCORE: &str = "typeof WOB_DONE_GLOBAL === \"undefined\" || !WOB_DONE_GLOBAL ? 0 : \
                     Math.min(1, Math.max(0, WOB_RAW_REWARD_GLOBAL))";

/// Creates tasks for the pages in `folder`, the folder `html` of the package.
pub fn import_miniwob(folder: &Path, options: &MiniwobOptions) -> Result<Imported, ImportError> {
    let pages = list_pages(folder)?;
    let invalid = |reason: String| Err(ImportError::Options(reason));
    if pages.is_empty() {
        return invalid(format!(
            "{} has no pages miniwob/*.html; give the folder html of the package miniwob",
            folder.display()
        ));
    }
    if let Some(unknown) = options.pages.iter().find(|page| !pages.contains(page)) {
        return invalid(format!("there is no page {unknown}; there are {}", pages.join(", ")));
    }
    if !options.base_url.starts_with("http://") && !options.base_url.starts_with("https://") {
        return invalid(format!(
            "the base URL must start with http:// or https://, not {:?}",
            options.base_url
        ));
    }
    let selected = pages.iter().filter(|page| options.pages.is_empty() || options.pages.contains(page));
    let lines = selected.flat_map(|page| (0..options.seeds).map(|seed| line(page, seed, options))).collect();
    Ok(Imported { lines, notes: Vec::new() })
}

/// Returns the names of the pages, sorted.
fn list_pages(folder: &Path) -> Result<Vec<String>, ImportError> {
    let folder = folder.join("miniwob");
    let read_error = |source| ImportError::Read { path: folder.clone(), source };
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(read_error)? {
        let path: PathBuf = entry.map_err(read_error)?.path();
        if path.extension().is_some_and(|extension| extension == "html") {
            pages.extend(path.file_stem().and_then(|name| name.to_str()).map(str::to_owned));
        }
    }
    pages.sort();
    Ok(pages)
}

fn line(page: &str, seed: u32, options: &MiniwobOptions) -> String {
    let base = options.base_url.trim_end_matches('/');
    let draft = TaskDraft {
        task_id: format!("{page}-{seed}").into(),
        task_name: INSTRUCTION.to_owned(),
        // The query makes tasks with different seeds distinct; the pages ignore it.
        website: format!("{base}/miniwob/{page}.html?seed={seed}"),
        domain: "MiniWoB".into(),
        subdomain: page.to_owned(),
        difficulty: 1,
        judge: Some(json!({ "javascript": SCORE })),
        setup: Some(setup(seed, options.episode_seconds)),
        ..TaskDraft::default()
    };
    draft.to_line("miniwob", &Map::from_iter([("seed".to_owned(), seed.into())]))
}

/// Starts the episode without a click on START, and prevents a second one, which would overwrite the reward.
fn setup(seed: u32, episode_seconds: u32) -> String {
    let millis = u64::from(episode_seconds) * 1000;
    format!(
        "Math.seedrandom({seed});
core.EPISODE_MAX_TIME = {millis};
core.startEpisodeReal();
core.startEpisode = core.startEpisodeReal = () => {{}};
while (!WOB_TASK_READY) await new Promise(requestAnimationFrame);"
    )
}
