//! Files of a session: uploads that are chosen in file inputs, and downloads that are kept.

use std::sync::{Arc, Mutex};

use browser::{DownloadState, FileBudget, FileInfo, FileOrigin, Options};
use proto::ErrorCode;
use serde_json::json;

use crate::common::{
    fixture::{session_options, with_instance, with_options, with_session},
    raw_site::{self, RawRequest, RawResponse},
    tester::Tester,
};

/// Forms with file inputs, visible and hidden, and links to files.
const PAGE: &str = "<title>Files</title>
    <form method=post action=/upload enctype=multipart/form-data><input type=file name=one id=one> <input type=file name=many id=many multiple> <button>send</button></form>
    <input type=file id=secret style='display: none'><button onclick=secret.click()>choose</button> <button>nothing</button>
    <a href=/stored>stored</a> <a href=/paper.pdf>paper</a> <a href=/large>large</a> <a href=/stored target=_blank>window</a>";

/// Every byte value, so that a change of encoding or line ends shows.
fn content() -> Vec<u8> {
    (0..4096_u32).map(|number| (number * 7 % 256) as u8).collect()
}

/// Returns the content of the first file of a multipart body.
fn first_file(request: &RawRequest) -> Vec<u8> {
    let boundary = request.body.windows(2).position(|bytes| bytes == b"\r\n").expect("a boundary");
    let start = request.body.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a part") + 4;
    let mut separator = b"\r\n".to_vec();
    separator.extend(&request.body[..boundary]);
    let end =
        request.body[start..].windows(separator.len()).position(|bytes| bytes == separator).expect("an end");
    request.body[start..start + end].to_vec()
}

async fn start_site() -> String {
    let stored = Arc::new(Mutex::new(b"as served".to_vec()));
    let site = raw_site::start(move |request| {
        let attachment =
            |name: &'static str, body: Vec<u8>| RawResponse { headers: name, ..RawResponse::page(body) };
        match request.path.as_str() {
            "/upload" => {
                *stored.lock().unwrap() = first_file(request);
                RawResponse::page("<title>Received</title><a href=/stored>stored</a>")
            }
            "/stored" => attachment(
                "content-disposition: attachment; filename=\"stored.bin\"\r\n",
                stored.lock().unwrap().clone(),
            ),
            "/paper.pdf" => {
                RawResponse { content_type: "application/pdf", ..RawResponse::page("%PDF-1.4\n%%EOF") }
            }
            "/large" => attachment("content-disposition: attachment; filename=large\r\n", vec![7; 3 << 20]),
            _ => RawResponse::page(PAGE),
        }
    })
    .await;
    format!("http://{site}")
}

async fn open_page(tester: &mut Tester) -> String {
    let site = start_site().await;
    tester.run(json!({"visit_page": {"url": format!("{site}/")}})).await;
    site
}

fn names(tester: &Tester) -> Vec<String> {
    tester.instance.list_files().into_iter().map(|file| file.name).collect()
}

#[test]
fn file_is_uploaded_submitted_and_downloaded_byte_for_byte() {
    with_session(&json!({"downloads": "keep"}), async |tester| {
        open_page(tester).await;
        tester.instance.write_file("photo.png", content().into()).await.unwrap();
        let (x, y) = tester.find("#one").await.centre();
        tester.run(json!({"set_files": {"files": ["photo.png"], "x": x, "y": y}})).await;
        assert_eq!(tester.js("[one.files[0].name, one.files[0].size]").await, json!(["photo.png", 4096]));
        tester.click_named("send").await;
        assert_eq!(tester.js("document.title").await, "Received");
        tester.click_named("stored").await;
        assert_eq!(names(tester), ["photo.png", "stored.bin"]);
        assert_eq!(tester.instance.read_file("stored.bin").await.unwrap().to_vec(), content());
        tester.instance.delete_file("stored.bin").await.unwrap();
        assert_eq!(names(tester), ["photo.png"]);
        assert_eq!(tester.js("document.title").await, "Received", "a download does not change the page");
    });
}

#[test]
fn files_are_chosen_by_id_and_in_an_open_chooser() {
    with_instance(async |tester| {
        open_page(tester).await;
        for name in ["a.txt", "b.txt"] {
            tester.instance.write_file(name, name.to_owned().into()).await.unwrap();
        }
        let id = tester.mark("#many").await;
        tester.run(json!({"set_files": {"files": ["a.txt", "b.txt"], "id": id}})).await;
        assert_eq!(tester.js("[...many.files].map((file) => file.name)").await, json!(["a.txt", "b.txt"]));
        tester.click_named("choose").await;
        tester.run(json!({"set_files": {"files": ["b.txt"]}})).await;
        assert_eq!(tester.js("secret.files[0].text()").await, "b.txt");
    });
}

#[test]
fn wrong_uses_are_explained() {
    with_instance(async |tester| {
        open_page(tester).await;
        for name in ["a.txt", "b.txt"] {
            tester.instance.write_file(name, "x".into()).await.unwrap();
        }
        let one = tester.mark("#one").await;
        let nothing = tester.mark("=nothing").await;
        for (arguments, code, expected) in [
            (json!({"files": ["a.txt"]}), ErrorCode::BadRequest, "no file chooser is open"),
            (json!({"files": ["c.txt"], "id": one}), ErrorCode::NotFound, "there is no file \"c.txt\""),
            (json!({"files": ["a.txt", "b.txt"], "id": one}), ErrorCode::BadRequest, "takes a single file"),
            (json!({"files": ["a.txt"], "id": nothing}), ErrorCode::BadRequest, "opens no file chooser"),
        ] {
            let error = tester.expect_error(json!({"set_files": arguments})).await;
            assert_eq!(error.code(), code, "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        let error = tester.instance.write_file("../escape", "x".into()).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::BadRequest, "{error}");
    });
}

#[test]
fn downloads_and_documents_are_kept() {
    with_session(&json!({"downloads": "keep"}), async |tester| {
        let site = open_page(tester).await;
        tester.click_named("paper").await;
        tester.click_named("window").await;
        tester.run(json!({"visit_page": {"url": format!("{site}/paper.pdf")}})).await;
        let files = tester.instance.list_files();
        let found: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(found, ["paper.pdf", "stored.bin", "paper (1).pdf"]);
        let complete = |file: &FileInfo| matches!(&file.origin, FileOrigin::Download { url, state: DownloadState::Complete } if url.starts_with(&site));
        assert!(files.iter().all(complete), "{files:?}");
        assert_eq!(tester.instance.read_file("paper.pdf").await.unwrap(), "%PDF-1.4\n%%EOF");
        assert_eq!(tester.js("document.title").await, "Files");
    });
}

#[test]
fn downloads_are_bounded_and_removed_with_the_session() {
    let budget = Arc::new(FileBudget::new(1 << 20, 2 << 20));
    let options = Options { files: Arc::clone(&budget), ..session_options(&json!({"downloads": "keep"})) };
    with_options(&options, async |tester| {
        open_page(tester).await;
        tester.click_named("large").await;
        tester.click_named("stored").await;
        let files = tester.instance.list_files();
        assert!(
            matches!(&files[0].origin, FileOrigin::Download { state: DownloadState::TooLarge, .. }),
            "{files:?}"
        );
        assert_eq!(tester.instance.read_file("stored.bin").await.unwrap(), "as served");
        let error = tester.instance.write_file("big", vec![0; 2 << 20].into()).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::TooLarge, "{error}");
        assert_eq!(budget.used(), 9);
    });
    assert_eq!(budget.used(), 0, "given back with the session");
}

#[test]
fn downloads_are_refused_by_default() {
    with_instance(async |tester| {
        let site = open_page(tester).await;
        tester.click_named("stored").await;
        assert_eq!(names(tester), Vec::<String>::new());
        let error = tester.expect_error(json!({"visit_page": {"url": format!("{site}/paper.pdf")}})).await;
        assert_eq!(error.code(), ErrorCode::NavigationFailed);
    });
}
