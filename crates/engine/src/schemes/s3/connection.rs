//! One HTTP/1.1 connection to a service: a request at a time. It is made when it is first needed, kept open, and made
//! anew once when the service has closed it meanwhile.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_LENGTH, ETAG, HOST, RANGE};
use hyper_util::rt::TokioIo;
use rusty_s3::Method;
use tokio::net::TcpStream;

use super::store::{self, Outcome, Problem, Store};

/// How long a service may take to take a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Of an answer that is no object: a list of a thousand keys of a KiB fits.
const WORDS_BYTES_MAX: usize = 4 << 20;

/// What is asked.
pub struct Request<'a> {
    pub method: Method,
    pub key: &'a str,
    /// Sorted by name.
    pub query: &'a [(&'a str, &'a str)],
    /// First and last byte.
    pub range: Option<(u64, u64)>,
    pub body: Bytes,
}

/// What was answered, when it was no error.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub etag: String,
    pub length: u64,
    /// Bytes that went into the buffer.
    pub read_bytes: usize,
    /// The answer's words, where no buffer was given.
    pub words: String,
}

/// A connection, or the place for one.
#[derive(Default)]
pub struct Connection {
    sender: Option<SendRequest<Full<Bytes>>>,
}

fn method_of(method: Method) -> hyper::Method {
    match method {
        Method::Head => hyper::Method::HEAD,
        Method::Get => hyper::Method::GET,
        Method::Post => hyper::Method::POST,
        Method::Put => hyper::Method::PUT,
        Method::Delete => hyper::Method::DELETE,
    }
}

fn io_problem(error: &std::io::Error) -> Problem {
    Problem::new(error.raw_os_error().unwrap_or(libc::EIO), error.to_string())
}

fn http_problem(error: &hyper::Error) -> Problem {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(found) = inner.downcast_ref::<std::io::Error>()
            && found.raw_os_error().is_some()
        {
            return io_problem(found);
        }
        source = inner.source();
    }
    if error.is_parse() {
        return Problem::new(libc::EPROTO, "the endpoint speaks no HTTP");
    }
    Problem::new(libc::ECONNRESET, "the endpoint closed the connection")
}

/// The nearest errno of an answer that is an error.
fn errno_of(status: u16, code: &str) -> i32 {
    match (code, status) {
        ("QuotaExceeded", _) => libc::EDQUOT,
        ("EntityTooLarge" | "EntityTooSmall" | "InvalidPart", _) => libc::EFBIG,
        ("SlowDown" | "ServiceUnavailable" | "InternalError", _) | (_, 503) => libc::EBUSY,
        ("NoSuchBucket" | "NoSuchKey" | "NoSuchUpload", _) | (_, 404) => libc::ENOENT,
        (_, 401 | 403) => libc::EACCES,
        (_, 405 | 501) => libc::ENOTSUP,
        (_, 507) => libc::ENOSPC,
        (_, 408) => libc::ETIMEDOUT,
        ("", _) => libc::EPROTO,
        _ => libc::EIO,
    }
}

impl Connection {
    /// Asks, and waits for the whole answer. What is read of an object goes into `into`.
    pub async fn ask(
        &mut self,
        store: &Store,
        request: Request<'_>,
        into: Option<&mut [u8]>,
    ) -> Outcome<Answer> {
        let asked = self.ask_twice(store, request, into);
        match tokio::time::timeout(store.timeout, asked).await {
            Ok(answer) => answer.inspect_err(|problem| {
                // An answer that was not read to its end would be taken for the next one's.
                if problem.errno == libc::EPROTO {
                    self.sender = None;
                }
            }),
            Err(_) => {
                self.sender = None;
                let words = format!("no answer within {} s", store.timeout.as_secs());
                Err(Problem::new(libc::ETIMEDOUT, words))
            }
        }
    }

    async fn ask_twice(
        &mut self,
        store: &Store,
        request: Request<'_>,
        into: Option<&mut [u8]>,
    ) -> Outcome<Answer> {
        let target = store.signed(request.method, request.key, request.query)?;
        let was_open = self.sender.is_some();
        let mut sent = self.send(store, &target, &request).await;
        if sent.is_err() && was_open {
            // The service closes what stood idle: that is no error of the operation.
            self.sender = None;
            sent = self.send(store, &target, &request).await;
        }
        match sent {
            Ok(response) => read(response, request.method, into).await,
            Err(problem) => {
                self.sender = None;
                Err(problem)
            }
        }
    }

    async fn send(
        &mut self,
        store: &Store,
        target: &str,
        request: &Request<'_>,
    ) -> Outcome<hyper::Response<Incoming>> {
        let mut built = hyper::Request::builder()
            .method(method_of(request.method))
            .uri(target)
            .header(HOST, host_header(store))
            .header(CONTENT_LENGTH, request.body.len());
        if let Some((first, last)) = request.range {
            built = built.header(RANGE, format!("bytes={first}-{last}"));
        }
        let built = built
            .body(Full::new(request.body.clone()))
            .map_err(|_| Problem::new(libc::EINVAL, "the request cannot be written"))?;
        let sender = self.open(store).await?;
        let sent = async {
            sender.ready().await?;
            sender.send_request(built).await
        };
        sent.await.map_err(|error| http_problem(&error))
    }

    async fn open(&mut self, store: &Store) -> Outcome<&mut SendRequest<Full<Bytes>>> {
        if self.sender.as_ref().is_none_or(SendRequest::is_closed) {
            let place = (store.host.as_str(), store.port);
            let late = |_| Problem::new(libc::ETIMEDOUT, "the endpoint takes no connection");
            let stream = tokio::time::timeout(CONNECT, TcpStream::connect(place))
                .await
                .map_err(late)?
                .map_err(|error| io_problem(&error))?;
            stream
                .set_nodelay(true)
                .map_err(|error| io_problem(&error))?;
            let (sender, driver) = http1::handshake(TokioIo::new(stream))
                .await
                .map_err(|error| http_problem(&error))?;
            // It ends with the connection; what went wrong is told to whoever sent.
            tokio::spawn(driver);
            self.sender = Some(sender);
        }
        self.sender
            .as_mut()
            .ok_or_else(|| Problem::new(libc::ENOTCONN, "no connection"))
    }
}

fn host_header(store: &Store) -> String {
    let host = if store.host.contains(':') {
        format!("[{}]", store.host)
    } else {
        store.host.clone()
    };
    if store.port == 80 {
        host
    } else {
        format!("{host}:{}", store.port)
    }
}

async fn read(
    response: hyper::Response<Incoming>,
    method: Method,
    into: Option<&mut [u8]>,
) -> Outcome<Answer> {
    let header = |name| {
        let value = response.headers().get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let mut answer = Answer {
        status: response.status().as_u16(),
        etag: header(ETAG),
        length: header(CONTENT_LENGTH).parse().unwrap_or_default(),
        ..Answer::default()
    };
    let good = response.status().is_success();
    let mut body = response.into_body();
    let (mut words, mut place) = (Vec::new(), into.filter(|_| good));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| http_problem(&error))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        match &mut place {
            Some(buffer) => {
                let room = buffer.len() - answer.read_bytes;
                if data.len() > room {
                    return Err(Problem::new(libc::EPROTO, "more bytes than were asked for"));
                }
                buffer[answer.read_bytes..][..data.len()].copy_from_slice(data);
                answer.read_bytes += data.len();
            }
            None if words.len() + data.len() > WORDS_BYTES_MAX => {
                return Err(Problem::new(libc::EPROTO, "an answer without end"));
            }
            None => words.extend_from_slice(data),
        }
    }
    answer.words = String::from_utf8_lossy(&words).into_owned();
    if good && !answer.words.contains("<Error>") {
        return Ok(answer);
    }
    let code = store::first(&answer.words, "Code").unwrap_or_default();
    let errno = errno_of(answer.status, &code);
    let words = match (code.as_str(), method) {
        ("", Method::Head) => format!("HTTP status {}", answer.status),
        ("", _) => format!("HTTP status {} without S3's words", answer.status),
        (code, _) => code.to_owned(),
    };
    Err(Problem::new(errno, words))
}

fn request<'a>(method: Method, key: &'a str, query: &'a [(&'a str, &'a str)]) -> Request<'a> {
    Request {
        method,
        key,
        query,
        range: None,
        body: Bytes::new(),
    }
}

/// An object in one request.
pub async fn put(store: &Store, on: &mut Connection, key: &str, body: Bytes) -> Outcome<()> {
    let put = Request {
        body,
        ..request(Method::Put, key, &[])
    };
    on.ask(store, put, None).await.map(|_| ())
}

/// An object of a file: in one request, or in parts where it is longer than one.
pub async fn put_whole(store: &Store, on: &mut Connection, key: &str, body: Bytes) -> Outcome<()> {
    if body.len() as u64 <= store.part_bytes {
        return put(store, on, key, body).await;
    }
    let begun = on
        .ask(store, request(Method::Post, key, &[("uploads", "")]), None)
        .await?;
    let upload = store::first(&begun.words, "UploadId")
        .ok_or_else(|| Problem::new(libc::EPROTO, "no UploadId in the answer"))?;
    let done = put_parts(store, on, key, (&upload, body)).await;
    if done.is_err() {
        // What stays of it is removed with the workspace.
        let _ = abort(store, on, key, &upload).await;
    }
    done
}

async fn put_parts(
    store: &Store,
    on: &mut Connection,
    key: &str,
    (upload, body): (&str, Bytes),
) -> Outcome<()> {
    let mut list = String::from("<CompleteMultipartUpload>");
    let part_bytes = store.part_bytes as usize;
    for (number, start) in (0..body.len()).step_by(part_bytes).enumerate() {
        let number = (number + 1).to_string();
        let query = [("partNumber", number.as_str()), ("uploadId", upload)];
        let part = Request {
            body: body.slice(start..body.len().min(start + part_bytes)),
            ..request(Method::Put, key, &query)
        };
        let etag = store::escaped(&on.ask(store, part, None).await?.etag);
        list += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
    }
    list += "</CompleteMultipartUpload>";
    let query = [("uploadId", upload)];
    let end = Request {
        body: list.into(),
        ..request(Method::Post, key, &query)
    };
    on.ask(store, end, None).await.map(|_| ())
}

pub async fn abort(store: &Store, on: &mut Connection, key: &str, upload: &str) -> Outcome<()> {
    let query = [("uploadId", upload)];
    on.ask(store, request(Method::Delete, key, &query), None)
        .await
        .map(|_| ())
}

/// Bytes of an object from `offset` on, as many as `into` holds or there are.
pub async fn get(
    store: &Store,
    on: &mut Connection,
    key: &str,
    (offset, into): (u64, &mut [u8]),
) -> Outcome<usize> {
    if into.is_empty() {
        return Ok(0);
    }
    let range = Some((offset, offset + into.len() as u64 - 1));
    let get = Request {
        range,
        ..request(Method::Get, key, &[])
    };
    let answer = match on.ask(store, get, Some(into)).await {
        Err(problem) if problem.words == "InvalidRange" => return Ok(0),
        other => other?,
    };
    if answer.status != 206 && offset > 0 {
        return Err(Problem::new(libc::EPROTO, "the endpoint knows no ranges"));
    }
    Ok(answer.read_bytes)
}

/// An object's bytes.
pub async fn size(store: &Store, on: &mut Connection, key: &str) -> Outcome<u64> {
    let answer = on.ask(store, request(Method::Head, key, &[]), None).await?;
    Ok(answer.length)
}

pub async fn delete(store: &Store, on: &mut Connection, key: &str) -> Outcome<()> {
    on.ask(store, request(Method::Delete, key, &[]), None)
        .await
        .map(|_| ())
}

/// Keys that begin with `prefix`, of which the first `count_max` (at most a thousand), and whether more follow.
pub async fn list(
    store: &Store,
    on: &mut Connection,
    prefix: &str,
    (after, count_max): (&str, u32),
) -> Outcome<(Vec<String>, bool)> {
    let count = count_max.to_string();
    let mut query = vec![
        ("list-type", "2"),
        ("max-keys", count.as_str()),
        ("prefix", prefix),
    ];
    if !after.is_empty() {
        query.push(("start-after", after));
    }
    let answer = on
        .ask(store, request(Method::Get, "", &query), None)
        .await?;
    if !answer.words.contains("<ListBucketResult") {
        return Err(Problem::new(
            libc::EPROTO,
            "the endpoint does not answer as S3 does",
        ));
    }
    let contents = store::elements(&answer.words, "Contents");
    let keys: Vec<String> = contents
        .filter_map(|found| store::first(found, "Key"))
        .collect();
    // What is listed may be removed next: an endpoint that knows no prefix must not decide what that is.
    if let Some(other) = keys.iter().find(|key| !key.starts_with(prefix)) {
        let words = format!(
            "the endpoint lists {other:?}, not asked for: it does not begin with {prefix:?}"
        );
        return Err(Problem::new(libc::EPROTO, words));
    }
    if !after.is_empty() && !keys.is_empty() && keys.iter().all(|key| key.as_str() <= after) {
        return Err(Problem::new(libc::EPROTO, "the endpoint's list has no end"));
    }
    let more = store::first(&answer.words, "IsTruncated").is_some_and(|word| word == "true");
    Ok((keys, more))
}

/// Uploads in parts that were begun and not ended, below `prefix`: key and upload.
pub async fn uploads(
    store: &Store,
    on: &mut Connection,
    prefix: &str,
) -> Outcome<Vec<(String, String)>> {
    let query = [("prefix", prefix), ("uploads", "")];
    let answer = on
        .ask(store, request(Method::Get, "", &query), None)
        .await?;
    let found = store::elements(&answer.words, "Upload");
    let pairs =
        found.filter_map(|one| Some((store::first(one, "Key")?, store::first(one, "UploadId")?)));
    Ok(pairs.filter(|(key, _)| key.starts_with(prefix)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_told_from_a_refusal() {
        assert_eq!(errno_of(403, "QuotaExceeded"), libc::EDQUOT);
        assert_eq!(errno_of(403, "AccessDenied"), libc::EACCES);
        assert_eq!(errno_of(404, "NoSuchBucket"), libc::ENOENT);
        assert_eq!(errno_of(503, ""), libc::EBUSY);
        assert_eq!(errno_of(418, ""), libc::EPROTO);
    }
}
