//! The pictures of an episode on disk: `images/task_0007_1f3a…/step_000.png`. Owns the naming; writes off the
//! async threads, and makes them durable before the trajectory that names them is.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use bytes::Bytes;

/// The folder of one attempt at a task.
#[derive(Clone, Debug)]
pub struct Gallery {
    folder: PathBuf,
}

impl Gallery {
    /// A folder of its own for every attempt, so that a retried episode never mixes with the one before.
    pub async fn create(images: &Path, index: usize) -> io::Result<Self> {
        let tag = uuid::Uuid::new_v4().simple().to_string();
        let folder = images.join(format!("task_{index:04}_{}", &tag[..8]));
        let gallery = Self { folder };
        let made = gallery.clone();
        blocking(move || fs::create_dir_all(&made.folder)).await?;
        Ok(gallery)
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

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// A page that shows nothing at all. Only a small file can be one, so large ones are not even decoded.
pub fn is_blank(picture: &[u8]) -> bool {
    const LARGEST_BLANK: usize = 64 << 10;
    if picture.len() > LARGEST_BLANK {
        return false;
    }
    let mut decoder = png::Decoder::new(io::Cursor::new(picture));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let Ok(mut reader) = decoder.read_info() else { return false };
    let Some(size) = reader.output_buffer_size() else { return false };
    let mut pixels = vec![0; size];
    let Ok(frame) = reader.next_frame(&mut pixels) else { return false };
    pixels.truncate(frame.buffer_size());
    pixels.iter().all(|value| *value == 255)
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
}
