//! The container of Blosc 1: blocks of bytes, shuffled by the bytes or bits of elements and compressed.
//!
//! In Rust, because the library is C with C++ (snappy) and brings compressors that are here already.

use std::ops::Range;

/// Bytes of the header.
const HEADER: usize = 16;
/// Bytes of the header and the offset of a single block.
pub const OVERHEAD: usize = HEADER + 8;
/// Version of the format, and of each compressor's.
const VERSIONS: [u8; 2] = [2, 1];

const SHUFFLED: u8 = 0x01;
const STORED: u8 = 0x02;
const BIT_SHUFFLED: u8 = 0x04;
/// Blocks are one stream each, not one for each byte of an element.
const ONE_STREAM: u8 = 0x10;

/// Blocks of elements longer than this, or of fewer elements than the other, are one stream.
const MOST_STREAMS: usize = 16;
const LEAST_STREAM: usize = 128;

/// Bytes of a block that is written: it stays in a core's cache.
const BLOCK: usize = 256 << 10;

/// Compressors by their number in the header.
const BLOSCLZ: u8 = 0;
const LZ4: u8 = 1;
const SNAPPY: u8 = 2;
const ZLIB: u8 = 3;
const ZSTD: u8 = 4;

type Outcome<T> = Result<T, String>;

fn damaged() -> String {
    "its blosc data is damaged".into()
}

fn word(bytes: &[u8], at: usize) -> Outcome<usize> {
    let word = bytes.get(at..at + 4).ok_or_else(damaged)?;
    Ok(u32::from_le_bytes([word[0], word[1], word[2], word[3]]) as usize)
}

/// The bytes that were compressed; `expected`: their number.
///
/// # Errors
/// Damaged data, another number of bytes, snappy.
pub fn decode(from: &[u8], expected: usize) -> Outcome<Vec<u8>> {
    let [flags, element] = [2, 3].map(|at| from.get(at).copied().unwrap_or_default());
    let (element, compressor) = (usize::from(element).max(1), flags >> 5);
    let [bytes, block, compressed] = [word(from, 4)?, word(from, 8)?, word(from, 12)?];
    if from[0] > VERSIONS[0] || compressed != from.len() || bytes != expected {
        return Err(damaged());
    }
    let mut to = vec![0; bytes];
    if flags & STORED != 0 {
        to.copy_from_slice(from.get(HEADER..HEADER + bytes).ok_or_else(damaged)?);
        return Ok(to);
    }
    if bytes > 0 && block == 0 {
        return Err(damaged());
    }
    let mut plain = vec![0; block.min(bytes)];
    for (number, to) in to.chunks_mut(block.max(1)).enumerate() {
        let splits = flags & ONE_STREAM == 0 && element <= MOST_STREAMS && block / element >= LEAST_STREAM;
        let streams = if splits && to.len() == block { element } else { 1 };
        let shuffled = flags & (SHUFFLED | BIT_SHUFFLED) != 0;
        let plain = &mut plain[..to.len()];
        let mut at = word(from, HEADER + 4 * number)?;
        // Streams of equal length; what an element does not divide is not there.
        let length = to.len() / streams;
        for stream in 0..streams {
            let (part, end) = stream_at(from, at)?;
            let range = stream * length..(stream + 1) * length;
            let into = if shuffled { &mut plain[range] } else { &mut to[range] };
            match part.len() == length {
                true => into.copy_from_slice(&from[part]),
                false => decompress(compressor, &from[part], into)?,
            }
            at = end;
        }
        match (flags & SHUFFLED != 0, flags & BIT_SHUFFLED != 0) {
            (true, _) => unshuffle(plain, to, element),
            (_, true) => bit_unshuffle(plain, to, element),
            _ => {}
        }
    }
    Ok(to)
}

/// The bytes of the stream at an offset, and where the next begins.
fn stream_at(from: &[u8], at: usize) -> Outcome<(Range<usize>, usize)> {
    let start = at.checked_add(4).ok_or_else(damaged)?;
    let end = start.checked_add(word(from, at)?).filter(|&end| end <= from.len()).ok_or_else(damaged)?;
    Ok((start..end, end))
}

/// Fills `to`.
fn decompress(compressor: u8, from: &[u8], to: &mut [u8]) -> Outcome<()> {
    let length = match compressor {
        BLOSCLZ => blosclz(from, to),
        LZ4 => lz4_flex::block::decompress_into(from, to).ok(),
        ZLIB => {
            let mut zlib = flate2::Decompress::new(true);
            let done = zlib.decompress(from, to, flate2::FlushDecompress::Finish);
            done.ok().map(|_| zlib.total_out() as usize)
        }
        ZSTD => zstd::bulk::decompress_to_buffer(from, to).ok(),
        SNAPPY => return Err("blosc with snappy is not supported; zstd, lz4, zlib and blosclz are".into()),
        other => return Err(format!("blosc has no compressor {other}")),
    };
    if length == Some(to.len()) { Ok(()) } else { Err(damaged()) }
}

/// Blosc's own compressor, a form of FastLZ. The bytes that were written; `None`: damaged.
fn blosclz(from: &[u8], to: &mut [u8]) -> Option<usize> {
    /// Longer distances have two more bytes.
    const FAR: usize = 8191;
    let mut input = from.iter().copied();
    let mut control = usize::from(input.next()?) & 31;
    let mut end = 0;
    loop {
        if control < 32 {
            for _ in 0..=control {
                *to.get_mut(end)? = input.next()?;
                end += 1;
            }
        } else {
            let (mut length, high) = ((control >> 5) - 1, (control & 31) << 8);
            if length == 6 {
                loop {
                    let more = input.next()?;
                    length += usize::from(more);
                    if more != 255 {
                        break;
                    }
                }
            }
            let low = usize::from(input.next()?);
            let distance = match (low, high) {
                (255, 0x1f00) => {
                    let [high, low] = [input.next()?, input.next()?].map(usize::from);
                    FAR + (high << 8) + low
                }
                _ => high + low,
            };
            let start = end.checked_sub(distance + 1)?;
            for at in start..start + length + 3 {
                *to.get_mut(end)? = to[at];
                end += 1;
            }
        }
        match input.next() {
            Some(next) => control = usize::from(next),
            None => return Some(end),
        }
    }
}

/// From all first bytes, then all second bytes, ... to elements. What is less than an element stays.
fn unshuffle(from: &[u8], to: &mut [u8], element: usize) {
    let count = from.len() / element;
    let (whole, rest) = to.split_at_mut(count * element);
    for (number, to) in whole.chunks_exact_mut(element).enumerate() {
        to.iter_mut().enumerate().for_each(|(byte, to)| *to = from[byte * count + number]);
    }
    rest.copy_from_slice(&from[count * element..]);
}

fn shuffle(from: &[u8], to: &mut [u8], element: usize) {
    let count = from.len() / element;
    for (number, from) in from.chunks_exact(element).enumerate() {
        from.iter().enumerate().for_each(|(byte, from)| to[byte * count + number] = *from);
    }
    to[count * element..].copy_from_slice(&from[count * element..]);
}

/// From bit 0 of all elements, then bit 1 of all, ... to elements. Blosc does not shuffle the bits of other numbers of
/// elements than multiples of eight.
fn bit_unshuffle(from: &[u8], to: &mut [u8], element: usize) {
    let count = from.len() / element;
    let eights = if count.is_multiple_of(8) { count / 8 } else { 0 };
    let whole = eights * 8 * element;
    to[..whole].fill(0);
    for bit in 0..8 * element {
        for eight in 0..eights {
            let bits = from[bit * eights + eight];
            for number in 0..8 {
                to[(eight * 8 + number) * element + bit / 8] |= (bits >> number & 1) << (bit % 8);
            }
        }
    }
    to[whole..].copy_from_slice(&from[whole..]);
}

/// Blocks with shuffled bytes, by zstd.
///
/// # Errors
/// More than 2 GiB, which the format has no room for.
pub fn encode(from: &[u8], element: usize, level: u8) -> Outcome<Vec<u8>> {
    let element = if element > 255 { 1 } else { element.max(1) };
    if from.len() > i32::MAX as usize - OVERHEAD {
        return Err(format!("a chunk of {} bytes is too large for blosc", from.len()));
    }
    let block = (BLOCK / element * element).min(from.len().next_multiple_of(element).max(element));
    let count = from.len().div_ceil(block);
    let mut to = vec![0; HEADER + 4 * count];
    let flags = SHUFFLED | ONE_STREAM | ZSTD << 5;
    let mut shuffled = vec![0; block.min(from.len())];
    // Levels of blosc, 1 to 9, are every other level of zstd.
    let level = i32::from(level.clamp(1, 9)) * 2 - 1;
    for (number, from) in from.chunks(block).enumerate() {
        let at = to.len() as u32;
        to[HEADER + 4 * number..][..4].copy_from_slice(&at.to_le_bytes());
        let shuffled = &mut shuffled[..from.len()];
        shuffle(from, shuffled, element);
        let compressed = zstd::bulk::compress(shuffled, level).map_err(|error| error.to_string())?;
        let stream = if compressed.len() < shuffled.len() { &compressed } else { &*shuffled };
        to.extend((stream.len() as u32).to_le_bytes());
        to.extend(stream);
    }
    let stored = to.len() >= HEADER + from.len();
    if stored {
        to.truncate(HEADER);
        to.extend(from);
    }
    let flags = if stored { flags | STORED } else { flags };
    to[..4].copy_from_slice(&[VERSIONS[0], VERSIONS[1], flags, element as u8]);
    let sizes = [from.len(), block, to.len()];
    for (number, size) in sizes.into_iter().enumerate() {
        to[4 + 4 * number..][..4].copy_from_slice(&(size as u32).to_le_bytes());
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_damage_is_an_error() {
        for (length, element) in [(0, 8), (5, 8), (4096, 16), (600_000, 8), (300_001, 4)] {
            let plain: Vec<u8> = (0..length).map(|i: usize| (i / 8 * (i % 8) % 251) as u8).collect();
            let coded = encode(&plain, element, 5).unwrap();
            assert_eq!(decode(&coded, length).unwrap(), plain, "{length} {element}");
            assert!(length < 1000 || coded.len() < length / 2, "{} of {length}", coded.len());
            assert!(decode(&coded, length + 1).is_err());
            assert!(decode(&coded[..coded.len() - 1], length).is_err());
            for at in 0..coded.len().min(200) {
                let mut bad = coded.clone();
                bad[at] ^= 0x55;
                let _ = decode(&bad, length);
            }
        }
    }

    /// A block in streams, with the bits of elements shuffled, as the library writes it, but stored.
    #[test]
    fn bits_are_unshuffled() {
        let plain: Vec<u8> =
            (0..64 * 128 * 2_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let mut to = [VERSIONS[0], VERSIONS[1], BIT_SHUFFLED | ZLIB << 5, 2].to_vec();
        let streams = [0, 1].map(|half| {
            let mut stream = vec![0_u8; plain.len() / 2];
            for (place, to) in stream.iter_mut().enumerate() {
                let bit = half * 8 + place / (plain.len() / 16);
                let eight = place % (plain.len() / 16);
                *to = (0..8).map(|n| (plain[(eight * 8 + n) * 2 + bit / 8] >> (bit % 8) & 1) << n).sum();
            }
            stream
        });
        let size = HEADER + 4 + 8 + plain.len();
        for word in [plain.len(), plain.len(), size, HEADER + 4] {
            to.extend((word as u32).to_le_bytes());
        }
        for stream in &streams {
            to.extend((stream.len() as u32).to_le_bytes());
            to.extend(stream);
        }
        assert_eq!(decode(&to, plain.len()).unwrap(), plain);
    }

    #[test]
    fn blosclz_copies_literals_and_matches() {
        let mut to = [0; 12];
        // Three literals, then five bytes from three back, then a run of four.
        assert_eq!(blosclz(&[2, 1, 2, 3, (3 << 5), 2, (2 << 5), 0], &mut to), Some(12));
        assert_eq!(to, [1, 2, 3, 1, 2, 3, 1, 2, 2, 2, 2, 2]);
        for bad in [&[][..], &[5, 1], &[0, 1, 3 << 5, 9], &[0, 1, 7 << 5, 255, 255]] {
            assert_eq!(blosclz(bad, &mut to), None, "{bad:?}");
        }
    }
}
