//! The archives of a node: where they are, which are open for replays, and which are being recorded. An archive is opened
//! once for all leases that replay it; leases that record into the same archive share a recorder.

use std::{
    collections::HashMap,
    fs,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use proto::network::NetworkOptions;
use replay::{Archive, ArchiveError, ArchiveOptions, MatchRules, Recorder, RecorderOptions, Redaction};
use tokio::sync::Mutex;

use crate::{error::ApiError, tasks::Tasks};

/// The number of archives that stay open without a lease that replays them.
const MAX_UNUSED: usize = 4;
/// The index of an archive is written after this time without a lease that records into it.
const INDEX_DELAY: Duration = Duration::from_secs(10);

pub(crate) struct Archives {
    root: PathBuf,
    /// The most recently used first.
    open: Mutex<Vec<OpenArchive>>,
    recorders: StdMutex<HashMap<RecorderKey, Arc<Recorder>>>,
    tasks: Tasks,
}

struct OpenArchive {
    directory: PathBuf,
    rules: MatchRules,
    files: Files,
    archive: Arc<Archive>,
}

/// Names, sizes and times of the files of an archive: if they change, it is opened again.
type Files = Vec<(PathBuf, u64, Option<SystemTime>)>;
type RecorderKey = (PathBuf, String);

/// A lease's use of a recorder. When the last one ends, the recorder is closed and the index written.
pub(super) struct Recording {
    /// `None` only while this is dropped.
    recorder: Option<Arc<Recorder>>,
    key: RecorderKey,
    archives: Arc<Archives>,
}

impl Archives {
    pub(crate) fn new(root: PathBuf, tasks: &Tasks) -> Self {
        Self { root, open: Mutex::default(), recorders: StdMutex::default(), tasks: tasks.clone() }
    }

    /// Returns the directory of an archive: below the root, whether the name is relative or absolute.
    fn directory(&self, name: &str) -> Result<PathBuf, ApiError> {
        let invalid = |reason: &str| {
            ApiError::BadRequest(format!("the session option network: the archive {name:?} {reason}"))
        };
        let path = Path::new(name);
        let relative = if path.is_absolute() {
            let outside = || invalid("is not in the directory that the node was started with (--archives)");
            // The root is free of symbolic links; the path need not be.
            let resolved = path
                .parent()
                .zip(path.file_name())
                .and_then(|(parent, name)| parent.canonicalize().ok().map(|parent| parent.join(name)));
            let inside = [Some(path.to_owned()), resolved].into_iter().flatten();
            let mut inside = inside.filter_map(|path| path.strip_prefix(&self.root).ok().map(Path::to_owned));
            inside.next().ok_or_else(outside)?
        } else {
            path.to_owned()
        };
        if relative.as_os_str().is_empty()
            || !relative.components().all(|part| matches!(part, Component::Normal(_)))
        {
            return Err(invalid("must be the name of a directory below that of --archives"));
        }
        let directory = self.root.join(relative);
        // A symbolic link must not lead elsewhere either.
        if let Ok(real) = directory.canonicalize()
            && !self.root.canonicalize().is_ok_and(|root| real.starts_with(root))
        {
            return Err(invalid("leads out of the directory of --archives"));
        }
        Ok(directory)
    }

    /// Returns an archive for replays. It is opened again if its files have changed.
    pub(super) async fn open(&self, name: &str, rules: MatchRules) -> Result<Arc<Archive>, ApiError> {
        let directory = self.directory(name)?;
        if !directory.is_dir() {
            return Err(ApiError::BadRequest(format!(
                "the session option network: the archive {name:?} does not exist: {} is not a directory",
                directory.display()
            )));
        }
        // Held while opening, so that many leases at once open it once.
        let mut open = self.open.lock().await;
        let opened = {
            let directory = directory.clone();
            let known = open.iter().position(|open| open.directory == directory && open.rules == rules);
            let known = known.map(|position| open.remove(position));
            tokio::task::spawn_blocking(move || reopen(known, directory, rules)).await
        };
        let failed = |reason: String| {
            ApiError::BadRequest(format!("the session option network: the archive {name:?}: {reason}"))
        };
        let opened = opened.map_err(|error| ApiError::Internal(error.to_string()))?;
        let opened = opened.map_err(|error| failed(error.to_string()))?;
        if opened.archive.exchanges().is_empty() {
            return Err(failed(format!("{} has no recordings to replay", directory.display())));
        }
        let archive = Arc::clone(&opened.archive);
        open.insert(0, opened);
        let mut unused = 0;
        open.retain(|open| {
            unused += usize::from(Arc::strong_count(&open.archive) == 1);
            Arc::strong_count(&open.archive) > 1 || unused <= MAX_UNUSED
        });
        Ok(archive)
    }

    /// Starts to record into an archive, which is created if it does not exist.
    pub(super) async fn record(
        self: &Arc<Self>,
        name: &str,
        redaction: Redaction,
    ) -> Result<Recording, ApiError> {
        let directory = self.directory(name)?;
        let key = (directory.clone(), format!("{redaction:?}"));
        let recording =
            |recorder| Recording { recorder: Some(recorder), key: key.clone(), archives: Arc::clone(self) };
        if let Some(recorder) = self.recorders().get(&key) {
            return Ok(recording(Arc::clone(recorder)));
        }
        let options = RecorderOptions { redaction, ..RecorderOptions::default() };
        let opened = tokio::task::spawn_blocking(move || Recorder::open(&directory, options)).await;
        let opened = opened.map_err(|error| ApiError::Internal(error.to_string()))?;
        let opened = opened.map_err(|error| {
            ApiError::BadRequest(format!("the session option network: the archive {name:?}: {error}"))
        })?;
        for recovered in opened.recovered() {
            tracing::warn!(archive = name, ?recovered, "an earlier recording of this archive was cut off");
        }
        // Another lease may have been faster; then its recorder is used and this one has written nothing.
        let recorder = Arc::clone(self.recorders().entry(key.clone()).or_insert_with(|| Arc::new(opened)));
        Ok(recording(recorder))
    }

    fn recorders(&self) -> MutexGuard<'_, HashMap<RecorderKey, Arc<Recorder>>> {
        self.recorders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes a recorder that no lease uses, and writes the index. Blocks.
    fn close_unused(&self, key: &RecorderKey) {
        let unused = {
            let mut recorders = self.recorders();
            let is_unused = recorders.get(key).is_some_and(|recorder| Arc::strong_count(recorder) == 1);
            is_unused.then(|| recorders.remove(key)).flatten().and_then(Arc::into_inner)
        };
        // An archive without recordings gets no index.
        let unused = unused.filter(|recorder| recorder.statistics().exchanges > 0);
        if let Some(Err(error)) = unused.map(Recorder::finish) {
            tracing::error!(%error, "cannot write the index of an archive; its recordings are complete without it");
        }
    }
}

/// What is not recorded, by the options of a lease.
pub(super) fn redaction(options: &NetworkOptions) -> Redaction {
    let mut redaction = if options.keep_secrets { Redaction::none() } else { Redaction::default() };
    redaction.merge(&Redaction {
        headers: options.redact_headers.clone(),
        query: options.redact_query.clone(),
        fields: options.redact_fields.clone(),
        request_fields: Vec::new(),
    });
    redaction
}

fn reopen(
    known: Option<OpenArchive>,
    directory: PathBuf,
    rules: MatchRules,
) -> Result<OpenArchive, ArchiveError> {
    let files = list_files(&directory)?;
    if let Some(known) = known.filter(|known| known.files == files) {
        return Ok(known);
    }
    let options = ArchiveOptions { rules: rules.clone(), ..ArchiveOptions::default() };
    let archive = Archive::open(&directory, options)?;
    for problem in archive.problems() {
        tracing::warn!(%problem, "a recording of the archive cannot be used");
    }
    Ok(OpenArchive { directory, rules, files, archive })
}

fn list_files(directory: &Path) -> Result<Files, ArchiveError> {
    let paths = replay::layout::warc_files(directory)?;
    let describe = |path: PathBuf| {
        let metadata = fs::metadata(&path).ok();
        let length = metadata.as_ref().map_or(0, fs::Metadata::len);
        (path, length, metadata.and_then(|metadata| metadata.modified().ok()))
    };
    Ok(paths.into_iter().map(describe).collect())
}

impl Recording {
    /// Appends an exchange. Blocks.
    pub(super) fn append(&self, exchange: replay::Exchange) -> Result<(), ArchiveError> {
        self.recorder.as_ref().map_or(Ok(()), |recorder| recorder.append(exchange))
    }
}

impl Drop for Recording {
    /// Closes the recorder after a delay, unless another lease uses it by then: opening it again would read the whole archive.
    /// When the node stops, it is closed at once.
    fn drop(&mut self) {
        self.recorder = None;
        let (archives, key) = (Arc::clone(&self.archives), self.key.clone());
        let stopping = archives.tasks.stopping().clone();
        self.archives.tasks.spawn("index of an archive", async move {
            let _ = tokio::time::timeout(INDEX_DELAY, stopping.cancelled()).await;
            let _ = tokio::task::spawn_blocking(move || archives.close_unused(&key)).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", root.path().join("out")).unwrap();
        let archives = Archives::new(root.path().to_owned(), &Tasks::default());
        let inside = root.path().join("shop");
        for name in ["shop", inside.to_str().unwrap()] {
            assert_eq!(archives.directory(name).unwrap(), inside, "{name}");
        }
        assert_eq!(archives.directory("a/b").unwrap(), root.path().join("a/b"));
        for name in ["..", "a/../../b", "/etc", ".", "out", root.path().to_str().unwrap()] {
            let error = archives.directory(name).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
