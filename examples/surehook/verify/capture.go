package verify

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/surehook/surehook/signing"
)

const maxCapture = 32 << 20

// mark is the byte order mark that programs on Windows put in front of a text.
const mark = "\ufeff"

// capture is a request, and what had to be assumed to read it.
type capture struct {
	message signing.Message
	notes   []string
}

func readCapture(text []byte) (capture, error) {
	start := bytes.TrimLeft(bytes.TrimPrefix(text, []byte(mark)), " \t\r\n")
	start = bytes.TrimPrefix(start, []byte("$ ")) // a line from a terminal
	if bytes.HasPrefix(start, []byte("curl ")) || bytes.HasPrefix(start, []byte("curl\t")) || bytes.HasPrefix(start, []byte("curl\\")) {
		return readCurl(string(start))
	}
	return readHTTP(start)
}

// readHTTP reads a request as it is on the wire. Dumps are forgiven lines that end with
// LF alone, a body without its length, and HTTP/2 in the first line; the bytes of the
// body are never touched.
func readHTTP(text []byte) (capture, error) {
	line, rest, found := bytes.Cut(text, []byte("\n"))
	if !found {
		return capture{}, errors.New("this is neither raw HTTP (POST /path HTTP/1.1, headers, an empty line, the body) nor a curl command")
	}
	if line = bytes.TrimRight(line, "\r"); bytes.HasSuffix(line, []byte(" HTTP/2")) || bytes.HasSuffix(line, []byte(" HTTP/3")) {
		line = append(bytes.Clone(line[:len(line)-1]), "1.1"...)
	}
	r := bufio.NewReader(io.MultiReader(bytes.NewReader(line), strings.NewReader("\r\n"), bytes.NewReader(rest)))
	req, err := http.ReadRequest(r)
	if err != nil {
		return capture{}, fmt.Errorf("this is neither a curl command nor raw HTTP (POST /path HTTP/1.1, headers, an empty line, the body): %w", err)
	}
	c := capture{message: signing.Message{Method: req.Method, URL: req.RequestURI, Header: req.Header}}
	if req.Host != "" && strings.HasPrefix(req.RequestURI, "/") {
		c.message.URL = "https://" + req.Host + req.RequestURI
		if signsURL(req.Header) {
			c.notes = append(c.notes, "the URL is put together from the Host header, and the sender has signed it: if a proxy has changed it, give -url")
		}
	}
	body := text[bodyStart(text):]
	declared := req.Header.Get("Content-Length")
	if len(req.TransferEncoding) > 0 {
		decoded, err := io.ReadAll(req.Body)
		if err == nil {
			c.message.Body = decoded
			return c, nil
		}
		c.notes = append(c.notes, "the body is said to be chunked and is not: it is taken as it is")
	} else if declared != "" {
		switch more, ends := int64(len(body))-req.ContentLength, int64(bytes.Count(body, []byte("\n"))); {
		case more > 0 && more == ends && ends == int64(bytes.Count(body, []byte("\r\n"))):
			c.notes = append(c.notes, "the body is longer than declared by one byte for each of its lines: something has probably put CR LF for LF, such as an editor or Git")
		case more > 0:
			body = body[:req.ContentLength]
			c.notes = append(c.notes, counted(more, "byte after the body's declared length is left out", "bytes after the body's declared length are left out"))
		case more < 0:
			c.notes = append(c.notes, "the body is cut short: "+counted(-more, "byte is missing", "bytes are missing"))
		}
	}
	c.message.Body = body
	return c, nil
}

// bodyStart is behind the first empty line, whose end may be LF or CR LF.
func bodyStart(text []byte) int {
	at := 0
	for at < len(text) {
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			return len(text)
		}
		line := bytes.TrimRight(text[at:at+end], "\r")
		at += end + 1
		if len(line) == 0 {
			return at
		}
	}
	return len(text)
}
