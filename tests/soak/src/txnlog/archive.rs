//! ZooKeeper's archive format: big-endian numbers, and strings and buffers behind their length.

/// Reads one record. Every read gives `None` where the record ends too early.
pub struct Archive<'a> {
    left: &'a [u8],
}

impl<'a> Archive<'a> {
    pub fn new(bytes: &'a [u8]) -> Archive<'a> {
        Archive { left: bytes }
    }

    pub fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, left) = self.left.split_at_checked(length)?;
        self.left = left;
        Some(bytes)
    }

    pub fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub fn long(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.bytes(8)?.try_into().ok()?))
    }

    pub fn boolean(&mut self) -> Option<bool> {
        Some(self.bytes(1)?[0] != 0)
    }

    /// A length of -1 stands for no buffer at all, which is as good as an empty one here.
    pub fn buffer(&mut self) -> Option<&'a [u8]> {
        match self.int()? {
            -1 => Some(&[]),
            length => self.bytes(usize::try_from(length).ok()?),
        }
    }

    pub fn string(&mut self) -> Option<String> {
        String::from_utf8(self.buffer()?.to_vec()).ok()
    }

    /// The elements of a vector; `None` when one of them is `None`.
    pub fn vector<T>(
        &mut self,
        mut element: impl FnMut(&mut Archive<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.int()?.max(0);
        (0..count).map(|_| element(self)).collect()
    }

    pub fn acl(&mut self) -> Option<()> {
        self.vector(|acl| {
            acl.int()?;
            acl.buffer()?;
            acl.buffer().map(drop)
        })
        .map(drop)
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}
