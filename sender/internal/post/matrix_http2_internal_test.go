//go:build linux

package post

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

func http2Rows(m *matrix) {
	var reached ledger
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		switch n, err := io.Copy(io.Discard, r.Body); {
		case err != nil || n != r.ContentLength:
			status = http.StatusBadRequest
		case r.URL.Path == "/failing":
			status = http.StatusInternalServerError
		case r.URL.Path == "/closes":
			w.Header().Set("Connection", "close") // which is a GOAWAY after the answer
		}
		reached.add(r.Header.Get("Webhook-Id"), status)
		w.WriteHeader(status)
	})
	var alone, both http.Protocols
	alone.SetHTTP2(true)
	both.SetHTTP2(true)
	both.SetHTTP1(true)
	for name, c := range map[string]struct {
		protocols *http.Protocols
		first     func(*tls.ClientHelloInfo) (*tls.Config, error)
	}{
		"h2": {&alone, refuseHTTP1}, "h2 and http/1.1": {&both, nil},
		// Go's own takes a handshake that offers http/1.1 alone, and chooses nothing.
		"h2 after any handshake": {&alone, nil},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(m, err)
		server := &http.Server{Handler: handler, Protocols: c.protocols, ErrorLog: log.New(io.Discard, "", 0),
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{m.authority.Pair()}, GetConfigForClient: c.first}}
		go func() { _ = server.ServeTLS(l, "", "") }()
		m.Cleanup(func() { _ = server.Close() })
		base := "https://" + l.Addr().String()
		of := func(what string) string { return what + ", " + name }
		m.exact(
			row{name: of("200"), url: base + "/", record: reached.read, posts: 6, status: 200},
			row{name: of("500"), url: base + "/failing", record: reached.read, posts: 6, status: 500, class: sender.ClassStatus},
			row{name: of("200 to 900 KB"), url: base + "/", body: 900 << 10, record: reached.read, posts: 5, status: 200},
		)
		posts := 50
		if name != "h2" {
			posts = 10 // these differ in how HTTP/2 is chosen alone, which is before the first post
		}
		m.races(race{name: of("GOAWAY after each"), url: base + "/closes", record: reached.read, callers: 4, posts: posts, pause: around(time.Millisecond, time.Millisecond)})
	}
	for name, refuse := range map[string]refusal{
		"REFUSED_STREAM at once":            {frame: frameReset, at: frameHeaders},
		"REFUSED_STREAM to the whole body":  {frame: frameReset, at: frameData},
		"GOAWAY at once":                    {frame: frameGoAway, at: frameHeaders},
		"GOAWAY to the whole body":          {frame: frameGoAway, at: frameData},
		"RST_STREAM for reasons of its own": {frame: frameReset, at: frameHeaders, code: 2},
	} {
		m.Run(name, func(t *testing.T) {
			ours, peer := newCallers(t, m.authority, way{})
			for _, c := range []*caller{ours, peer} {
				base, streams := refuse.serve(t, m.authority.Pair())
				to, err := url.Parse(base)
				require.NoError(t, err)
				for n := range 3 {
					result := c.attempt(t.Context(), eventID(t, c, n), to, 0)
					require.Zero(t, result.StatusCode, c.name)
					require.Equal(t, sender.ClassReset, result.Class, "%s: %s", c.name, result.Error)
					require.Equal(t, c == ours && refuse.code == 0, result.ClosedIdle, "%s: %s", c.name, result.Error)
					require.EqualValues(t, n+1, streams.Load(), "%s: one stream an attempt: %s %s", c.name, result.Class, result.Error)
				}
			}
		})
	}
}

// refuseHTTP1 has a server answer a client that does not offer h2 with the alert
// no_application_protocol (RFC 7301, section 3.2). crypto/tls does not if http/1.1 is
// offered.
func refuseHTTP1(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if slices.Contains(hello.SupportedProtos, "h2") {
		return nil, nil
	}
	_, _ = hello.Conn.Write([]byte{21, 3, 3, 0, 2, 2, 120}) // a record that is a fatal alert
	_ = hello.Conn.Close()
	return nil, errors.New("no h2 is offered")
}

// Frames of HTTP/2: RFC 9113, section 6.
const (
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	frameGoAway   = 7

	endStream = 1
	ack       = 1
)

// refusal is an HTTP/2 server that answers each stream with a frame which says that
// nothing was done, when a frame of it comes.
type refusal struct {
	frame, at byte
	code      byte // 0: REFUSED_STREAM, or NO_ERROR of a GOAWAY
}

func (f refusal) serve(t *testing.T, certificate tls.Certificate) (base string, streams *atomic.Int32) {
	t.Helper()
	streams = new(atomic.Int32)
	base = serveRaw(t, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}, GetConfigForClient: refuseHTTP1}, func(c net.Conn, r *bufio.Reader) {
		if _, err := io.ReadFull(r, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		writeFrame(c, frameSettings, 0, 0, nil)
		for {
			var head [9]byte
			if _, err := io.ReadFull(r, head[:]); err != nil {
				return
			}
			length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
			kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])
			if _, err := r.Discard(length); err != nil {
				return
			}
			switch kind {
			case frameSettings:
				if flags&ack == 0 {
					writeFrame(c, frameSettings, ack, 0, nil)
				}
			case frameHeaders:
				streams.Add(1)
			}
			if kind == f.at && (kind == frameHeaders || flags&endStream != 0) {
				f.refuse(c, stream)
			}
		}
	})
	return base, streams
}

func (f refusal) refuse(c net.Conn, stream uint32) {
	if f.frame == frameGoAway { // the last stream that was looked at is 0: none
		writeFrame(c, frameGoAway, 0, 0, []byte{0, 0, 0, 0, 0, 0, 0, f.code})
		return
	}
	code := f.code
	if code == 0 {
		code = 7 // REFUSED_STREAM
	}
	writeFrame(c, frameReset, 0, stream, []byte{0, 0, 0, code})
}

// writeFrame ignores what fails: the connection's reader finds out.
func writeFrame(c net.Conn, kind, flags byte, stream uint32, payload []byte) {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	_, _ = c.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
}
