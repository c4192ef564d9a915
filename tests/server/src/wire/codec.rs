//! Numbers, strings and lists as they lie in a frame: big-endian, with their length in front.

/// Reads a frame's fields in order; `None` when the frame ends early or makes no sense.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub(crate) fn long(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.bytes(8)?.try_into().ok()?))
    }

    pub(crate) fn bool(&mut self) -> Option<bool> {
        Some(self.bytes(1)?[0] != 0)
    }

    /// A length of -1 stands for "none", which reads as empty.
    pub(crate) fn buffer(&mut self) -> Option<&'a [u8]> {
        let length = self.int()?.max(0);
        self.bytes(usize::try_from(length).ok()?)
    }

    pub(crate) fn string(&mut self) -> Option<String> {
        let bytes = self.buffer()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    pub(crate) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.int()?.max(0)).ok()
    }

    pub(crate) fn strings(&mut self) -> Option<Vec<String>> {
        // Collected one by one: a nonsensical count must not reserve memory.
        let mut strings = Vec::new();
        for _ in 0..self.count()? {
            strings.push(self.string()?);
        }
        Some(strings)
    }
}

/// Writes one frame; its length is filled in at the end.
#[derive(Debug)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Writer { bytes: vec![0; 4] }
    }

    pub(crate) fn int(&mut self, value: i32) -> &mut Self {
        self.bytes.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn long(&mut self, value: i64) -> &mut Self {
        self.bytes.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn bool(&mut self, value: bool) -> &mut Self {
        self.bytes.push(value.into());
        self
    }

    /// # Panics
    /// When `bytes` is longer than the protocol can say (2 GB).
    pub(crate) fn buffer(&mut self, bytes: &[u8]) -> &mut Self {
        self.int(i32::try_from(bytes.len()).expect("a buffer of less than 2 GB"));
        self.bytes.extend(bytes);
        self
    }

    pub(crate) fn string(&mut self, text: &str) -> &mut Self {
        self.buffer(text.as_bytes())
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend(bytes);
        self
    }

    /// What was written, without a length in front.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[4..]
    }

    pub(crate) fn frame(mut self) -> Vec<u8> {
        let length = u32::try_from(self.body().len()).expect("a frame of less than 4 GB");
        self.bytes[..4].copy_from_slice(&length.to_be_bytes());
        self.bytes
    }
}
