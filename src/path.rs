//! The rules for paths, which are ZooKeeper's: of znodes, before the C client sees one, and of locks in any store.

/// Says what is wrong with a path, if anything is.
pub(crate) fn validate(path: &str) -> Result<(), &'static str> {
    let Some(names) = path.strip_prefix('/') else {
        return Err(if path.is_empty() { "the path is empty" } else { "a path starts with '/'" });
    };
    if names.is_empty() {
        return Ok(());
    }
    for name in names.split('/') {
        match name {
            "" if path.ends_with('/') => return Err("a path does not end in '/'"),
            "" => return Err("a name in the path is empty"),
            "." | ".." => return Err("relative names are not allowed"),
            _ => {}
        }
    }
    if path.chars().any(is_forbidden) {
        return Err("a NUL or another character that ZooKeeper does not allow");
    }
    Ok(())
}

/// As the servers see it: control characters, the private-use and the special block, and whatever
/// takes two of Java's characters.
fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// As [`validate`], for a path that the server completes: the last name may be empty.
pub(crate) fn validate_prefix(path: &str) -> Result<(), &'static str> {
    match path.strip_suffix('/') {
        Some("") => Ok(()),
        // "/" itself is a parent whose children begin right after it.
        Some("/") => Err("a name in the path is empty"),
        Some(parent) => validate(parent),
        None => validate(path),
    }
}

/// The prefix of the names of zklock's own znodes, below or next to a path of the program.
macro_rules! own_name {
    ($name:literal) => {
        concat!("zl-", $name)
    };
}
pub(crate) use own_name;

/// As [`validate`], for a recipe at a path that the program has chosen.
pub(crate) fn validate_chosen(path: &str) -> Result<(), &'static str> {
    validate(path)?;
    check_name(path)
}

/// Says so if the last name of a path that the program has chosen is one of zklock's own.
pub(crate) fn check_name(path: &str) -> Result<(), &'static str> {
    if last(path).starts_with(own_name!("")) {
        return Err("names that begin with zl- are zklock's own: choose another name");
    }
    Ok(())
}

/// The path of the parent; `None` for the root.
pub(crate) fn parent(path: &str) -> Option<&str> {
    match path.rfind('/')? {
        0 if path.len() == 1 => None,
        0 => Some("/"),
        at => Some(&path[..at]),
    }
}

/// The rest of the name of one of our claims, after `zl-` and the czxid of its directory.
pub(crate) fn after_directory(name: &str) -> Option<&str> {
    let (directory, rest) = name.strip_prefix(own_name!(""))?.split_once('-')?;
    i64::from_str_radix(directory, 16).ok().map(|_| rest)
}

/// The last name of a path.
pub(crate) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_paths_pass() {
        for path in ["/", "/a", "/a/b", "/a.b/..c", "/ä/\u{4e2d}", "/a b", "/zookeeper/quota"] {
            assert_eq!(validate(path), Ok(()), "{path}");
        }
        for path in ["/", "/a/", "/a/lock-"] {
            assert_eq!(validate_prefix(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn bad_paths_do_not() {
        for path in [
            "",
            "a",
            "a/b",
            "/a/",
            "//",
            "//a",
            "/a//b",
            "/.",
            "/a/..",
            "/./a",
            "/a\0b",
            "/\u{1}",
            "/\u{7f}",
            "/\u{fff0}",
            "/a\n",
            "/\u{e000}",
            "/\u{1f512}",
        ] {
            assert!(validate(path).is_err(), "{path:?}");
        }
        for path in ["", "a/", "//", "/a//", "/../"] {
            assert!(validate_prefix(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn names_of_zklocks_own_are_not_to_be_chosen() {
        for path in ["/zl-", "/a/zl-open", "/zl-1f-lock-0000000007"] {
            assert!(check_name(path).is_err() && validate_chosen(path).is_err(), "{path}");
        }
        for path in ["/", "/a", "/zl", "/zlib", "/zl-a/b", "/a-zl-"] {
            assert_eq!(validate_chosen(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn a_parent_is_the_path_without_its_last_name() {
        assert_eq!(parent("/a/b"), Some("/a"));
        assert_eq!(parent("/a"), Some("/"));
        assert_eq!(parent("/"), None);
    }
}
