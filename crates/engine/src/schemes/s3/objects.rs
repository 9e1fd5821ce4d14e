//! What is done with objects, each one or more requests on a connection of the caller's.

use bytes::Bytes;
use rusty_s3::Method;

use super::connection::{Connection, Request};
use super::store;
use super::store::{Outcome, Problem, Store};

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
