//! As much of HTTP as a page takes that is only read: one request a connection, few connections, little time.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// So many are answered at once, each by a thread.
const WORKERS: usize = 4;
/// So many more may wait for that; the next are refused.
const WAITING: usize = 32;
/// A request's first line and headers are no longer.
const HEAD: usize = 8 * 1024;
const HEADERS: usize = 64;
/// Whoever has not sent its request within that, from when it connected, or not read the answer, is cut off.
const LIMIT: Duration = Duration::from_secs(5);
/// Whoever had to wait longer than that for its turn should have sent its request meanwhile.
const GRACE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Request {
    pub path: String,
    /// What stands behind the question mark.
    pub query: String,
    pub host: Option<String>,
    /// The version that the client has.
    pub known: Option<String>,
    is_head: bool,
}

pub struct Reply {
    status: u16,
    kind: &'static str,
    tag: Option<String>,
    body: Vec<u8>,
}

impl Reply {
    fn new(status: u16, kind: &'static str, body: impl Into<Vec<u8>>) -> Reply {
        Reply { status, kind, tag: None, body: body.into() }
    }

    pub fn text(status: u16, body: impl Into<Vec<u8>>) -> Reply {
        Reply::new(status, "text/plain; charset=utf-8", body)
    }

    pub fn html(body: String) -> Reply {
        Reply::new(200, "text/html; charset=utf-8", body)
    }

    pub fn file(kind: &'static str, body: impl Into<Vec<u8>>) -> Reply {
        Reply::new(200, kind, body)
    }

    pub fn not_modified() -> Reply {
        Reply::text(304, "")
    }

    pub fn tagged(self, version: String) -> Reply {
        Reply { tag: Some(version), ..self }
    }

    fn head(&self) -> String {
        let reason = match self.status {
            200 => "OK",
            304 => "Not Modified",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            421 => "Misdirected Request",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Internal Server Error",
        };
        let tag = self.tag.as_ref().map_or_else(String::new, |tag| format!("ETag: \"{tag}\"\r\n"));
        // Whatever slipped through the escaping could load nothing, and run nothing.
        format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{tag}\
             Content-Security-Policy: default-src 'none'; style-src 'self'; img-src data:; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Cache-Control: no-cache\r\nConnection: close\r\n\r\n",
            self.status,
            self.kind,
            self.body.len()
        )
    }
}

type Answer = dyn Fn(&Request) -> Reply + Send + Sync;

/// Answers, without an end, on threads of its own.
///
/// # Errors
/// There are no threads to be had.
pub fn serve(
    listener: TcpListener,
    answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> io::Result<()> {
    let (hand, taken) = sync_channel(WAITING);
    let (taken, answer) = (Arc::new(Mutex::new(taken)), Arc::new(answer));
    for _ in 0..WORKERS {
        let (taken, answer) = (Arc::clone(&taken), Arc::clone(&answer));
        let work = move || {
            while let Some((stream, connected)) = next(&taken) {
                // Who went meanwhile does not want to know.
                let _ = converse(stream, connected, answer.as_ref());
            }
        };
        thread::Builder::new().name("worker".to_owned()).spawn(work)?;
    }
    let listen = move || listen(&listener, &hand);
    thread::Builder::new().name("listener".to_owned()).spawn(listen)?;
    Ok(())
}

/// Hands each connection to a worker.
fn listen(listener: &TcpListener, hand: &SyncSender<(TcpStream, Instant)>) {
    for stream in listener.incoming() {
        match stream {
            Ok(stream) => {
                let handed = hand.try_send((stream, Instant::now()));
                if let Err(TrySendError::Full((mut stream, _))) = handed {
                    // It fits into the socket's buffer, so nobody is waited for.
                    let reply = Reply::text(503, "too many at once\n");
                    let _ = stream.set_nonblocking(true);
                    let _ = stream.write(&[reply.head().into_bytes(), reply.body].concat());
                }
            }
            // No descriptors are left: some will be.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn next(taken: &Mutex<Receiver<(TcpStream, Instant)>>) -> Option<(TcpStream, Instant)> {
    taken.lock().recv().ok()
}

fn converse(mut stream: TcpStream, connected: Instant, answer: &Answer) -> io::Result<()> {
    let deadline = (connected + LIMIT).max(Instant::now() + GRACE);
    let (is_head, reply) = match read(&mut stream, deadline)? {
        Ok(request) => (request.is_head, answer(&request)),
        Err(refusal) => (false, refusal),
    };
    let mut bytes = reply.head().into_bytes();
    if !is_head {
        bytes.extend(&reply.body);
    }
    write(&mut stream, &bytes, Instant::now() + LIMIT)
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn write(stream: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

/// A request, or the reply that refuses it.
fn read(stream: &mut TcpStream, deadline: Instant) -> io::Result<Result<Request, Reply>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            number => head.extend(&part[..number]),
        }
        if let Some(parsed) = parse(&head) {
            return Ok(parsed);
        }
        if head.len() > HEAD {
            return Ok(Err(Reply::text(431, "that is too long\n")));
        }
    }
}

/// `None` while there is more to come.
fn parse(head: &[u8]) -> Option<Result<Request, Reply>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(error) => return Some(Err(Reply::text(400, format!("{error}\n")))),
    }
    let is_head = match parsed.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Some(Err(Reply::text(405, "it can only be read: GET\n"))),
    };
    let (path, query) =
        parsed.path.map_or(("", ""), |target| target.split_once('?').unwrap_or((target, "")));
    let header = |name: &str| {
        let header = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(header.value).into_owned())
    };
    let known = header("if-none-match").map(|tag| tag.trim_matches('"').to_owned());
    let (path, query) = (path.to_owned(), query.to_owned());
    Some(Ok(Request { path, query, host: header("host"), known, is_head }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_whole_or_refused() {
        assert!(parse(b"GET / HTTP/1.1\r\nHost: a").is_none());
        let request =
            parse(b"GET /now?minutes=5 HTTP/1.1\r\nHost: a:1\r\nIf-None-Match: \"7\"\r\n\r\n");
        let request = request.expect("whole").unwrap_or_else(|_| panic!("it is one"));
        assert_eq!((request.path.as_str(), request.query.as_str()), ("/now", "minutes=5"));
        assert_eq!((request.host.as_deref(), request.known.as_deref()), (Some("a:1"), Some("7")));
        for (text, status) in [
            ("POST / HTTP/1.1\r\n\r\n", 405),
            ("DELETE /locks HTTP/1.1\r\n\r\n", 405),
            ("nonsense\x01\r\n\r\n", 400),
            ("GET / HTTP/9.9\r\n\r\n", 400),
        ] {
            let refusal = parse(text.as_bytes()).expect("whole").err();
            assert_eq!(refusal.map(|refusal| refusal.status), Some(status), "{text}");
        }
    }
}
