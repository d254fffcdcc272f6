//! Segments of buffers.

/// A segment of a buffer that goes to, or comes from, a rank; in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The rank.
    pub peer: usize,
    /// Where the segment begins.
    pub offset: usize,
    /// Its length.
    pub len: usize,
}

/// The length of a buffer that holds the segments.
pub(crate) fn end(segments: &[Segment]) -> usize {
    segments.iter().map(|segment| segment.offset + segment.len).max().unwrap_or(0)
}

/// What is wrong with a list of segments, if anything.
pub(crate) fn invalid(segments: &[Segment], size: usize, disjoint: bool) -> Option<String> {
    let mut seen = vec![false; size];
    for segment in segments {
        if segment.peer >= size {
            return Some(format!("a segment for rank {} of {size}", segment.peer));
        }
        if std::mem::replace(&mut seen[segment.peer], true) {
            return Some(format!("two segments for rank {}", segment.peer));
        }
        if segment.offset.checked_add(segment.len).is_none_or(|end| end > isize::MAX as usize) {
            return Some(format!("a segment of {} bytes at {}", segment.len, segment.offset));
        }
    }
    let mut sorted: Vec<&Segment> = segments.iter().filter(|segment| segment.len > 0).collect();
    sorted.sort_by_key(|segment| segment.offset);
    let overlap = sorted.windows(2).find(|pair| pair[0].offset + pair[0].len > pair[1].offset)?;
    disjoint.then(|| format!("segments from ranks {} and {} overlap", overlap[0].peer, overlap[1].peer))
}

/// Why these segments are not equal blocks, one for each rank.
pub(crate) fn unequal(segments: &[Segment], size: usize) -> Option<String> {
    let block = segments.first().map_or(0, |segment| segment.len);
    let fits = |(rank, segment): (usize, &Segment)| {
        segment.peer == rank && segment.len == block && Some(segment.offset) == rank.checked_mul(block)
    };
    let equal = segments.len() == size && segments.iter().enumerate().all(fits);
    (!equal).then(|| format!("segments that are not {size} equal, contiguous blocks"))
}

#[cfg(test)]
mod tests {
    use super::{Segment, invalid, unequal};

    #[test]
    fn equal_segments_are_blocks_in_order() {
        let segment = |peer, offset, len| Segment { peer, offset, len };
        assert_eq!(unequal(&[segment(0, 0, 4), segment(1, 4, 4)], 2), None);
        let others = [
            vec![segment(0, 0, 4)],
            vec![segment(1, 0, 4), segment(0, 4, 4)],
            vec![segment(0, 0, 4), segment(1, 8, 4)],
            vec![segment(0, 0, 4), segment(1, 4, 3)],
        ];
        assert!(others.iter().all(|segments| unequal(segments, 2).is_some()));
    }

    #[test]
    fn invalid_segments_are_described() {
        let segment = |peer, offset, len| Segment { peer, offset, len };
        assert_eq!(invalid(&[segment(0, 0, 4), segment(1, 4, 4), segment(2, 4, 0)], 3, true), None);
        assert_eq!(invalid(&[segment(0, 0, 5), segment(1, 4, 4)], 2, false), None);
        let cases = [
            (vec![segment(2, 0, 1)], "rank 2 of 2"),
            (vec![segment(1, 0, 1), segment(1, 1, 1)], "two segments"),
            (vec![segment(0, usize::MAX, 2)], "a segment of 2 bytes"),
            (vec![segment(1, 4, 4), segment(0, 0, 5)], "ranks 0 and 1 overlap"),
        ];
        for (segments, text) in cases {
            let said = invalid(&segments, 2, true).expect("wrong");
            assert!(said.contains(text), "{said}");
        }
    }
}
