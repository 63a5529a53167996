//! Rewrites a `.pt` file without compression, as earlier versions and PyTorch write it.

use std::fs::File;
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

pub(crate) fn uncompress(path: &Path) {
    let mut source = ZipArchive::new(File::open(path).unwrap()).unwrap();
    let target = path.with_extension("uncompressed");
    let mut writer = ZipWriter::new(File::create(&target).unwrap());
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for number in 0..source.len() {
        let mut record = source.by_index(number).unwrap();
        writer.start_file(record.name().unwrap(), options).unwrap();
        std::io::copy(&mut record, &mut writer).unwrap();
    }
    writer.finish().unwrap();
    std::fs::rename(target, path).unwrap();
}
