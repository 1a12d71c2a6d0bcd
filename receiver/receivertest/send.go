package receivertest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// Answer is the answer to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Result is the event's outcome by the answer's body, if the body is the receiver's.
	Result receiver.Result
}

// Message returns the request for [receiver.Receiver.Receive].
func (r *Request) Message() signing.Message {
	r.sender.t.Helper()
	h, body := r.sign()
	return signing.Message{Method: r.method, URL: r.sender.cfg.Path, Header: h, Body: body}
}

// Serve sends the request to a handler in this goroutine, at SenderConfig.Path. A panic of
// the handler is not recovered.
func (r *Request) Serve(handler http.Handler) Answer {
	r.sender.t.Helper()
	req := r.request(r.sender.t.Context(), r.sender.cfg.Path)
	req.RequestURI = r.sender.cfg.Path
	if req.Body == nil {
		req.Body = http.NoBody
	}
	w := recorder{httptest.NewRecorder()}
	handler.ServeHTTP(w, req)
	return answer(w.Result())
}

// Post sends the request to a URL. When ctx ends the client leaves, as a sender
// does whose own time is over. Truncated needs a URL with the scheme http.
func (r *Request) Post(ctx context.Context, url string) (Answer, error) {
	r.sender.t.Helper()
	req := r.request(ctx, url)
	if r.truncated {
		return postTruncated(req)
	}
	res, err := r.sender.cfg.Client.Do(req) //nolint:bodyclose // answer closes it
	if err != nil {
		return Answer{}, err
	}
	return answer(res), nil
}

func (r *Request) request(ctx context.Context, url string) *http.Request {
	r.sender.t.Helper()
	h, body := r.sign()
	declared := int64(len(body))
	var reader io.Reader = bytes.NewReader(body)
	if r.truncated {
		reader = io.MultiReader(bytes.NewReader(body[:len(body)/2]), failing{io.ErrUnexpectedEOF})
	}
	if r.pause > 0 {
		reader = &slow{reader, r.pause}
	}
	req, err := http.NewRequestWithContext(ctx, r.method, url, io.NopCloser(reader))
	if err != nil {
		r.sender.t.Fatalf("receivertest: %v", err)
	}
	req.Header = h
	req.ContentLength = declared
	if r.chunked {
		req.ContentLength = -1
	}
	return req
}

func answer(res *http.Response) Answer {
	defer func() { _ = res.Body.Close() }()
	a := Answer{Status: res.StatusCode, Header: res.Header}
	a.Body, _ = io.ReadAll(res.Body)
	var said struct{ Result receiver.Result }
	if json.Unmarshal(a.Body, &said) == nil {
		a.Result = said.Result
	}
	return a
}

// postTruncated closes its half of the connection in the middle of the body and
// still reads the answer, which no http.Client does.
func postTruncated(req *http.Request) (Answer, error) {
	if req.URL.Scheme != "http" {
		return Answer{}, fmt.Errorf("receivertest: a truncated request needs an http URL, not %s", req.URL.Scheme)
	}
	conn, err := new(net.Dialer).DialContext(req.Context(), "tcp", req.URL.Host)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = conn.Close() }()
	// Writing fails at the missing half, after all that is there.
	var out bytes.Buffer
	_ = req.Write(&out)
	if _, err := conn.Write(out.Bytes()); err != nil {
		return Answer{}, err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return Answer{}, err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), req) //nolint:bodyclose // answer closes it
	if err != nil {
		return Answer{}, err
	}
	return answer(res), nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type slow struct {
	io.Reader
	pause time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	time.Sleep(s.pause)
	return s.Reader.Read(p[:min(1, len(p))])
}

// recorder takes deadlines, as a real connection does, and ignores them.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetReadDeadline(time.Time) error  { return nil }
func (recorder) SetWriteDeadline(time.Time) error { return nil }
