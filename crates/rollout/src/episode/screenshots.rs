//! The pictures of an episode on disk: `images/task_0007_1f3a…/step_000.png`. Owns the naming; writes off the
//! async threads, and makes them durable before the trajectory that names them is.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use store::journal::Scan;
use tokio::sync::Semaphore;
use xxhash_rust::xxh3::Xxh3Default;

/// The folder of one attempt at a task.
#[derive(Clone, Debug)]
pub struct ScreenshotStore {
    folder: PathBuf,
}

impl ScreenshotStore {
    /// A folder of its own for every attempt, so that a retried episode never mixes with the one before. It is not
    /// there yet: [`ScreenshotStore::make`] it once it is noted where a resumed run finds it.
    pub fn new(images: &Path, index: usize) -> Self {
        let tag = uuid::Uuid::new_v4().simple().to_string();
        Self { folder: images.join(format!("task_{index:04}_{}", &tag[..8])) }
    }

    pub async fn make(&self) -> io::Result<()> {
        let folder = self.folder.clone();
        blocking(move || fs::create_dir_all(folder)).await
    }

    /// The folder's name, without the way to it.
    pub fn name(&self) -> Option<&str> {
        self.folder.file_name()?.to_str()
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub async fn save(&self, step: usize, picture: Bytes) -> io::Result<PathBuf> {
        let path = self.folder.join(format!("step_{step:03}.png"));
        let target = path.clone();
        blocking(move || fs::write(target, &picture)).await?;
        Ok(path)
    }

    /// Returns when every picture would survive the machine's sudden end.
    pub async fn sync(&self) -> io::Result<()> {
        let folder = self.folder.clone();
        blocking(move || {
            for entry in fs::read_dir(&folder)? {
                File::open(entry?.path())?.sync_data()?;
            }
            File::open(&folder)?.sync_all()
        })
        .await
    }

    /// Throws an attempt's pictures away: it was lost and another takes its place.
    pub async fn discard(self) {
        let _ = blocking(move || fs::remove_dir_all(self.folder)).await;
    }
}

/// Throws away the pictures of attempts that a dead run began and never finished: a resumed one begins them anew.
pub fn discard_abandoned(images: &Path, scan: &Scan) -> usize {
    let gone = |name: &&str| fs::remove_dir_all(images.join(name)).is_ok();
    scan.abandoned_images().into_iter().filter(gone).count()
}

/// More at once make no disk faster, and every thread that waits for one costs memory.
static DISK: Semaphore = Semaphore::const_new(32);

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let _turn = DISK.acquire().await.map_err(io::Error::other)?;
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// What a picture looks like, in a few bytes: enough to tell whether two are pixel-equal, and whether one is white.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    digest: u128,
    blank: bool,
}

impl Fingerprint {
    pub fn of(picture: &[u8]) -> Self {
        let mut hasher = Xxh3Default::new();
        match pixel_chunks(picture) {
            Some(chunks) => chunks.for_each(|chunk| hasher.update(chunk)),
            None => hasher.update(picture),
        }
        Self { digest: hasher.digest128(), blank: is_blank(picture) }
    }

    pub const fn is_blank(self) -> bool {
        self.blank
    }
}

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The parts of a PNG that make its pixels, without time stamps and the like: one encoder writes equal pixels in equal
/// bytes, so decoding them to compare is not worth its time.
fn pixel_chunks(picture: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let mut rest = picture.strip_prefix(SIGNATURE)?;
    let chunks = std::iter::from_fn(move || {
        loop {
            let length = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?) as usize;
            let chunk = rest.get(4..8usize.checked_add(length)?)?;
            rest = rest.get(length + 12..).unwrap_or_default();
            // A capital first letter means that no picture is whole without it.
            if chunk.first().is_some_and(u8::is_ascii_uppercase) {
                return Some(chunk);
            }
        }
    });
    Some(chunks)
}

/// A page that shows nothing at all. Only a small file can be one; the first pixel of another colour ends the search.
fn is_blank(picture: &[u8]) -> bool {
    const LARGEST_BLANK: usize = 64 << 10;
    if picture.len() > LARGEST_BLANK {
        return false;
    }
    let mut decoder = png::Decoder::new(io::Cursor::new(picture));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let Ok(mut reader) = decoder.read_info() else { return false };
    let mut rows = 0;
    loop {
        match reader.next_row() {
            Ok(Some(row)) if row.data().iter().all(|value| *value == 255) => rows += 1,
            Ok(None) => return rows > 0,
            Ok(Some(_)) | Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(pixels: &[u8], width: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, pixels.len() as u32 / 3 / width);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header().unwrap().write_image_data(pixels).unwrap();
        bytes
    }

    #[test]
    fn only_a_wholly_white_picture_is_blank() {
        let mut pixels = vec![255; 64 * 64 * 3];
        assert!(is_blank(&png(&pixels, 64)));
        pixels[5000] = 254;
        assert!(!is_blank(&png(&pixels, 64)));
        assert!(!is_blank(b"not a picture"));
    }

    #[test]
    fn pictures_are_equal_by_their_pixels_not_by_their_time_stamps() {
        let plain = png(&[7; 48], 4);
        let mut stamped = plain[..33].to_vec();
        stamped.extend(b"\x00\x00\x00\x07tIME\x07\xea\x0b\x0f\x0a\x00\x00\x00\x00\x00\x00");
        stamped.extend(&plain[33..]);
        assert_eq!(Fingerprint::of(&plain), Fingerprint::of(&stamped));
        assert_ne!(Fingerprint::of(&plain), Fingerprint::of(&png(&[8; 48], 4)));
        assert_ne!(Fingerprint::of(b"x"), Fingerprint::of(b"y"));
    }
}
