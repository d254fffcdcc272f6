//! Segments of variable length inside a message: without gaps while it is sent, at fixed offsets before and after.

use ferrier_plan::messages::LENGTH_BYTES;

/// Bytes of the encoded segment at the start of `bytes`: chunks with their length fields, and the end mark.
fn encoded_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(length) = bytes.get(at..at + LENGTH_BYTES).and_then(|length| length.try_into().ok()) {
        at += LENGTH_BYTES;
        match u32::from_le_bytes(length) as usize {
            0 => return at,
            length => at = at.saturating_add(length).min(bytes.len()),
        }
    }
    // Malformed; the decoder reports it.
    bytes.len()
}

/// Moves segments together, without gaps; returns their total length. Each is given by its offset and its greatest
/// length.
pub(super) fn compact(bytes: &mut [u8], segments: &[(usize, usize)]) -> usize {
    segments.iter().fold(0, |end, &(at, most)| {
        let len = encoded_len(&bytes[at..at + most]);
        bytes.copy_within(at..at + len, end);
        end + len
    })
}

/// Moves segments back to their offsets, the last one first. `starts` is scratch.
pub(super) fn expand(bytes: &mut [u8], segments: &[(usize, usize)], starts: &mut [usize]) {
    starts[0] = 0;
    for (index, &(_, most)) in segments.iter().enumerate() {
        let start = starts[index];
        starts[index + 1] = start + encoded_len(&bytes[start..bytes.len().min(start + most)]);
    }
    for (index, &(at, _)) in segments.iter().enumerate().rev() {
        bytes.copy_within(starts[index]..starts[index + 1], at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compacting and expanding restores the segments; malformed bytes are expanded without a panic.
    #[test]
    fn expanding_reverses_compacting() {
        let segments = [(0, 40), (64, 10), (128, 100)];
        let mut bytes = vec![7_u8; 228];
        let mut write = |at: usize, lengths: &[u8]| {
            let mut to = at;
            for &length in lengths {
                bytes[to..to + 4].copy_from_slice(&u32::from(length).to_le_bytes());
                bytes[to + 4..][..length.into()].fill(at as u8 + length);
                to += 4 + usize::from(length);
            }
            bytes[to..to + 4].fill(0);
            to + 4 - at
        };
        let lens = [write(0, &[3, 9]), write(64, &[1]), write(128, &[30, 2])];
        let before = bytes.clone();
        let compacted = compact(&mut bytes, &segments);
        assert_eq!(compacted, lens.iter().sum::<usize>());
        bytes[compacted..].fill(1);
        let mut starts = vec![0; 4];
        expand(&mut bytes, &segments, &mut starts);
        for ((at, _), len) in segments.iter().zip(lens) {
            assert_eq!(bytes[*at..at + len], before[*at..at + len]);
        }
        for byte in 0..=255 {
            bytes.fill(byte);
            expand(&mut bytes, &segments, &mut starts);
        }
    }
}
