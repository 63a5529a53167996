//! Recognises an all-white JPEG without decoding its pixels. Reads the compressed blocks only up to the first that is not
//! plain white, which is near the beginning in most screenshots.

const LUMA_SHIFT: i32 = 128;

/// A colour component: its sampling factors, the quantisation of its mean value and its code tables.
#[derive(Clone, Copy, Default)]
struct Component {
    id: u8,
    horizontal: u32,
    vertical: u32,
    quantisation: u8,
    mean_table: u8,
    detail_table: u8,
}

/// The code lengths and symbols of a Huffman table.
struct HuffmanTable<'a> {
    counts: &'a [u8],
    symbols: &'a [u8],
}

/// What the headers declare.
#[derive(Default)]
struct Headers<'a> {
    /// The divisor of the mean value, by number of the table.
    mean_divisors: [i32; 4],
    /// Tables of mean values, then of details, by number.
    tables: [[Option<HuffmanTable<'a>>; 4]; 2],
    width: u32,
    height: u32,
    components: Vec<Component>,
}

/// Returns whether a baseline JPEG has only white pixels. Other kinds of JPEG, which browsers do not write, count as not white.
pub(super) fn is_white(image: &[u8]) -> bool {
    read(image).unwrap_or(false)
}

fn read(image: &[u8]) -> Option<bool> {
    let mut rest = image.strip_prefix(b"\xff\xd8")?;
    let mut headers = Headers::default();
    loop {
        let [0xff, marker, high, low, ..] = *rest else { return None };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let segment = rest.get(4..2 + length)?;
        rest = &rest[2 + length..];
        match marker {
            0xdb => headers.read_quantisation(segment)?,
            0xc4 => headers.read_huffman(segment)?,
            0xc0 | 0xc1 => headers.read_frame(segment)?,
            0xda => {
                headers.read_scan(segment)?;
                return headers.has_white_blocks(rest);
            }
            // Comments and data of applications.
            0xe0..=0xef | 0xfe => {}
            _ => return None,
        }
    }
}

impl<'a> Headers<'a> {
    fn read_quantisation(&mut self, mut segment: &[u8]) -> Option<()> {
        while let [number @ 0..4, divisor, ..] = *segment {
            self.mean_divisors[usize::from(number)] = i32::from(divisor);
            segment = segment.get(65..)?;
        }
        segment.is_empty().then_some(())
    }

    fn read_huffman(&mut self, mut segment: &'a [u8]) -> Option<()> {
        while let Some((kind, rest)) = segment.split_first() {
            let (counts, rest) = rest.split_at_checked(16)?;
            let total = counts.iter().map(|count| usize::from(*count)).sum();
            let (symbols, rest) = rest.split_at_checked(total)?;
            let tables = self.tables.get_mut(usize::from(kind >> 4))?;
            *tables.get_mut(usize::from(kind & 15))? = Some(HuffmanTable { counts, symbols });
            segment = rest;
        }
        Some(())
    }

    fn read_frame(&mut self, segment: &[u8]) -> Option<()> {
        let ([8, high, low, wide, narrow, _count], components) = segment.split_first_chunk()? else {
            return None;
        };
        self.height = u32::from(u16::from_be_bytes([*high, *low]));
        self.width = u32::from(u16::from_be_bytes([*wide, *narrow]));
        let (components, _) = components.as_chunks::<3>();
        let component = |[id, sampling, quantisation]: &[u8; 3]| Component {
            id: *id,
            horizontal: u32::from(sampling >> 4),
            vertical: u32::from(sampling & 15),
            quantisation: *quantisation,
            ..Component::default()
        };
        self.components = components.iter().map(component).collect();
        Some(())
    }

    fn read_scan(&mut self, segment: &[u8]) -> Option<()> {
        let (count, rest) = segment.split_first()?;
        let (selected, _) = rest.get(..2 * usize::from(*count))?.as_chunks::<2>();
        // A scan of fewer components is part of an image in several scans.
        if selected.len() != self.components.len() {
            return None;
        }
        for ([id, tables], component) in selected.iter().zip(&mut self.components) {
            (component.mean_table, component.detail_table) = (tables >> 4, tables & 15);
            (component.id == *id).then_some(())?;
        }
        Some(())
    }

    fn table(&self, kind: usize, number: u8) -> Option<&HuffmanTable<'a>> {
        self.tables[kind].get(usize::from(number))?.as_ref()
    }

    /// Reads blocks until one has details or a mean other than white. A block has a mean, as the difference from the one before
    /// it, and details.
    fn has_white_blocks(&self, data: &[u8]) -> Option<bool> {
        let side = |factor: fn(&Component) -> u32| 8 * self.components.iter().map(factor).max().unwrap_or(0);
        let (across, down) = (side(|component| component.horizontal), side(|component| component.vertical));
        if across == 0 || down == 0 || self.width == 0 || self.height == 0 {
            return None;
        }
        let units = self.width.div_ceil(across) * self.height.div_ceil(down);
        let mut bits = BitReader { data, byte: 0, left: 0 };
        let mut means = vec![0; self.components.len()];
        for _ in 0..units {
            for (position, (component, mean)) in self.components.iter().zip(&mut means).enumerate() {
                let mean_table = self.table(0, component.mean_table)?;
                let detail_table = self.table(1, component.detail_table)?;
                let divisor = *self.mean_divisors.get(usize::from(component.quantisation))?;
                for _ in 0..component.horizontal * component.vertical {
                    *mean += bits.difference(mean_table)?;
                    // Eight times the value, rounded to the nearest.
                    let value = (*mean * divisor + 4).div_euclid(8);
                    let is_white = if position == 0 { value + LUMA_SHIFT >= 255 } else { value == 0 };
                    if !is_white || bits.symbol(detail_table)? != 0 {
                        return Some(false);
                    }
                }
            }
        }
        Some(true)
    }
}

/// Reads the compressed data bit by bit.
struct BitReader<'a> {
    data: &'a [u8],
    byte: u8,
    left: u32,
}

impl BitReader<'_> {
    fn bit(&mut self) -> Option<u32> {
        if self.left == 0 {
            // A zero follows each 0xff that is data; anything else is a marker.
            let used = match *self.data {
                [0xff, 0, ..] => 2,
                [0xff, ..] | [] => return None,
                _ => 1,
            };
            self.byte = self.data[0];
            self.data = &self.data[used..];
            self.left = 8;
        }
        self.left -= 1;
        Some(u32::from(self.byte >> self.left) & 1)
    }

    fn symbol(&mut self, table: &HuffmanTable<'_>) -> Option<u8> {
        let (mut code, mut first, mut index) = (0, 0, 0);
        for count in table.counts {
            code = code << 1 | self.bit()?;
            let count = u32::from(*count);
            if code < first + count {
                return table.symbols.get((index + code.checked_sub(first)?) as usize).copied();
            }
            index += count;
            first = (first + count) << 1;
        }
        None
    }

    /// Reads the difference between two means: the number of bits, then the bits, negative if the first of them is 0.
    fn difference(&mut self, table: &HuffmanTable<'_>) -> Option<i32> {
        let length = u32::from(self.symbol(table)?).min(16);
        let mut value = 0;
        for _ in 0..length {
            value = value << 1 | i32::from(self.bit()? == 1);
        }
        let is_negative = length > 0 && value >> (length - 1) == 0;
        Some(value - if is_negative { (1 << length) - 1 } else { 0 })
    }
}
