//! Cuts a stream of bytes into frames.

/// The largest frame that is taken for one. ZooKeeper itself refuses more than about 1 MB unless told otherwise.
const LARGEST: usize = 64 << 20;

/// Collects bytes as they arrive and gives them back frame by frame.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// Where the next frame starts in `bytes`.
    start: usize,
}

/// What lies at the front of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A frame, its four bytes of length included.
    Frame(Vec<u8>),
    /// Something that is no frame, for instance a four-letter word; from here on the stream cannot be cut.
    Foreign(Vec<u8>),
}

impl Frames {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame, `None` when more bytes are needed.
    pub(crate) fn take(&mut self) -> Option<Taken> {
        let rest = &self.bytes[self.start..];
        let length = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?) as usize;
        if length > LARGEST {
            let foreign = rest.to_vec();
            self.start = self.bytes.len();
            return Some(Taken::Foreign(foreign));
        }
        let frame = rest.get(..4 + length)?.to_vec();
        self.start += frame.len();
        Some(Taken::Frame(frame))
    }

    /// What is left of a stream that ended or cannot be cut any more.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let rest = self.bytes.split_off(self.start);
        *self = Frames::default();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_whole_however_the_bytes_arrive() {
        let stream = [0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9];
        for chunk in 1..=stream.len() {
            let mut frames = Frames::default();
            let mut taken = Vec::new();
            for bytes in stream.chunks(chunk) {
                frames.push(bytes);
                while let Some(Taken::Frame(frame)) = frames.take() {
                    taken.push(frame);
                }
            }
            assert_eq!(taken, [&stream[..6], &stream[6..10], &stream[10..]]);
        }
    }

    #[test]
    fn a_four_letter_word_is_no_frame() {
        let mut frames = Frames::default();
        frames.push(b"sr");
        assert_eq!(frames.take(), None);
        frames.push(b"vr");
        assert_eq!(frames.take(), Some(Taken::Foreign(b"srvr".to_vec())));
        assert!(frames.rest().is_empty());
    }
}
