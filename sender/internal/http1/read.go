package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// sized reads a body of a known length.
type sized struct {
	reader *bufio.Reader
	left   int64
}

// Read implements io.Reader. With the last bytes it returns io.EOF.
func (s *sized) Read(p []byte) (n int, err error) {
	if s.left > 0 {
		n, err = s.reader.Read(p[:min(int64(len(p)), s.left)])
		s.left -= int64(n)
	}
	switch {
	case s.left == 0:
		return n, io.EOF
	case errors.Is(err, io.EOF):
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// Close implements io.Closer.
func (s *sized) Close() error { return nil }

// readPlain reads an answer of the usual form up to its body, as ReadResponse would,
// which costs several times as much. It returns nil if the answer has another form, or is
// not there yet as a whole: then nothing was taken from the reader.
func (cn *conn) readPlain(r *http.Request, body *sized) *http.Response {
	if r.Method != http.MethodPost {
		return nil
	}
	if _, err := cn.reader.Peek(1); err != nil {
		return nil // the next read has the same error
	}
	buffered, _ := cn.reader.Peek(cn.reader.Buffered())
	end := bytes.Index(buffered, []byte("\r\n\r\n"))
	if end < 0 {
		return nil
	}
	answer, ok := parseHead(string(buffered[:end]))
	if !ok {
		return nil
	}
	_, _ = cn.reader.Discard(end + len("\r\n\r\n")) // they are buffered
	answer.Request = r
	if answer.ContentLength > 0 {
		*body = sized{cn.reader, answer.ContentLength}
		answer.Body = body
	}
	return answer
}

// parseHead reads a status line and headers, without the empty line behind them. It
// returns false for all that asks for more than to copy it. That is an interim answer, a
// body that is chunked or ends with the connection, repeated headers, spaces in unusual
// places, bytes outside of ASCII, and all that is malformed.
func parseHead(head string) (*http.Response, bool) {
	const proto = "HTTP/1.1"
	line, rest, more := strings.Cut(head, "\r\n")
	status, ok := strings.CutPrefix(line, proto+" ")
	if !ok || len(status) < 3 || len(status) > 3 && status[3] != ' ' || !isPlain(status, &valueBytes) {
		return nil, false
	}
	code, err := strconv.ParseUint(status[:3], 10, 16)
	if err != nil || code < 200 {
		return nil, false
	}
	a := &http.Response{Status: status, StatusCode: int(code), Proto: proto, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Body: http.NoBody}
	n := 0
	if more {
		n = strings.Count(rest, "\r\n") + 1
	}
	a.Header = make(http.Header, n)
	values := make([]string, n) // one allocation for all headers
	for i := range values {
		line, rest, _ = strings.Cut(rest, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimLeft(value, " ")
		if !ok || !isPlain(name, &tokenBytes) || !isPlainValue(value) {
			return nil, false
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if a.Header[name] != nil || !heed(a, name, value) {
			return nil, false
		}
		values[i] = value
		a.Header[name] = values[i : i+1 : i+1]
	}
	if code == http.StatusNoContent || code == http.StatusNotModified {
		a.ContentLength = 0
	}
	return a, a.ContentLength >= 0
}

// heed does what a header asks for besides being copied. It returns false if it cannot.
func heed(a *http.Response, name, value string) bool {
	switch name {
	case "Content-Length":
		n, err := strconv.ParseUint(value, 10, 63)
		a.ContentLength = int64(n)
		return err == nil
	case "Connection":
		return value == "keep-alive"
	case "Transfer-Encoding", "Trailer", "Pragma":
		return false
	}
	return true
}
