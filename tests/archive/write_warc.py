"""Writes a WARC file with warcio, in its own order of records and with its own digests: the response before the request, with a chunked body."""

import io
import sys

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter


def main(path: str) -> None:
    with open(path, "wb") as file:
        writer = WARCWriter(file, gzip=True)
        writer.write_record(writer.create_warcinfo_record("theirs.warc.gz", {"software": "warcio"}))
        for url, method, body in [("http://warcio.test/page", "GET", b""), ("http://warcio.test/post", "POST", b"a=1")]:
            chunked = b"5\r\nhello\r\n0\r\n\r\n"
            headers = StatusAndHeaders("200 OK", [("Content-Type", "text/plain"), ("Transfer-Encoding", "chunked")], "HTTP/1.1")
            response = writer.create_warc_record(url, "response", io.BytesIO(chunked), http_headers=headers)
            sent = [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", str(len(body)))]
            headers = StatusAndHeaders(f"{method} {url[18:]} HTTP/1.1", sent, is_http_request=True)
            request = writer.create_warc_record(url, "request", io.BytesIO(body), http_headers=headers)
            writer.write_request_response_pair(request, response)


main(sys.argv[1])
