package http1

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Body is the body of a request whose bytes are in memory. A request that has one, and
// nothing unusual, is written without net/http's Request.Write, which costs several times
// as much.
type Body struct{ left []byte }

// NewBody returns a body. b must not change until the exchange has ended.
func NewBody(b []byte) *Body { return &Body{b} }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// Close implements io.Closer. It does nothing: the body can still be read.
func (b *Body) Close() error { return nil }

// mostHeaders bounds the names of headers that appendHead sorts.
const mostHeaders = 32

// writePlain writes a POST with a Body and plain headers, byte for byte as
// Request.Write would. plain is false if the request is another one: then nothing was
// written.
func (cn *conn) writePlain(r *http.Request) (plain bool, err error) {
	body, ok := r.Body.(*Body)
	if !ok {
		return false, nil
	}
	head, ok := appendHead(cn.writer.AvailableBuffer(), r)
	if !ok {
		return false, nil
	}
	if n := int64(len(body.left)); n != r.ContentLength {
		return true, fmt.Errorf("http1: the request's ContentLength is %d, and its body has %d bytes", r.ContentLength, n)
	}
	if _, err := cn.writer.Write(head); err != nil {
		return true, err
	}
	_, err = cn.writer.Write(body.left)
	body.left = nil
	return true, err
}

// appendHead appends the request line and the headers of a POST. It returns false for all
// that Request.Write would change or refuse.
func appendHead(dst []byte, r *http.Request) ([]byte, bool) {
	if r.Method != http.MethodPost || r.ContentLength <= 0 || r.Close || len(r.TransferEncoding)+len(r.Trailer) > 0 {
		return dst, false
	}
	uri := r.URL.RequestURI()
	agents := r.Header["User-Agent"]
	if !isPlain(r.Host, &hostBytes) || !isPlain(uri, &uriBytes) || len(agents) == 0 || !isPlainValue(agents[0]) {
		return dst, false
	}
	dst = append(append(append(dst, "POST "...), uri...), " HTTP/1.1\r\nHost: "...)
	dst = append(append(dst, r.Host...), "\r\n"...)
	if agents[0] != "" {
		dst = appendHeader(dst, "User-Agent", agents[0])
	}
	dst = append(strconv.AppendInt(append(dst, "Content-Length: "...), r.ContentLength, 10), "\r\n"...)
	var room [mostHeaders]string
	names := room[:0]
	for name := range r.Header {
		switch {
		case name == "Host" || name == "User-Agent" || name == "Content-Length" || name == "Transfer-Encoding" || name == "Trailer":
			continue
		case len(names) == mostHeaders || !isPlain(name, &tokenBytes):
			return dst, false
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range r.Header[name] {
			if !isPlainValue(value) {
				return dst, false
			}
			dst = appendHeader(dst, name, value)
		}
	}
	return append(dst, "\r\n"...), true
}

func appendHeader(dst []byte, name, value string) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}

// byteSet has true for the bytes of a set.
type byteSet [256]bool

const lettersAndDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

var (
	hostBytes  = setOf(lettersAndDigits + "-._:[]")
	tokenBytes = setOf(lettersAndDigits + "!#$%&'*+-.^_`|~") // RFC 9110, section 5.6.2
	uriBytes   = setOf(visible())
	valueBytes = setOf(visible() + " ")
)

func setOf(bytes string) (s byteSet) {
	for i := range len(bytes) {
		s[bytes[i]] = true
	}
	return s
}

// visible has the visible characters of ASCII.
func visible() string {
	var all strings.Builder
	for c := byte('!'); c <= '~'; c++ {
		all.WriteByte(c)
	}
	return all.String()
}

// isPlain reports whether a text is not empty, and all its bytes are in a set.
func isPlain(text string, set *byteSet) bool {
	for i := range len(text) {
		if !set[text[i]] {
			return false
		}
	}
	return text != ""
}

// isPlainValue reports whether a header's value is written as it is.
func isPlainValue(v string) bool {
	return v == "" || v[0] != ' ' && v[len(v)-1] != ' ' && isPlain(v, &valueBytes)
}
