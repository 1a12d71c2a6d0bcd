package signing_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/surehook/surehook/signing"
)

// Each description is refused with the reasons, or is a scheme: it verifies what it signs,
// and not with another body, another time or a header more.
func FuzzDescription(f *testing.F) {
	f.Add("X-Sig", "sha256=", "", "", "{timestamp}.{body}", "X-Time", "", "", "", "", uint32(0))
	f.Add("X-Sig", "", "v1", "h", "{timestamp}.{headers}.{body}", "", "t", "", "X-Id", "", uint32(0x10))
	f.Add("X-Sig", "", "v1", "", "{body}", "", "", "a.b", "", "", uint32(0x200))
	f.Add("X-Sig", "v0=", "", "", "v0:{id}:{url}{body}", "", "", "", "X-Id", "https://example.com/?a=b", uint32(1))
	f.Add("X Sig", "\r\n", "t", "t", "{body}{", "x-sig", "t", "t", "X-Sig", "ftp://x", ^uint32(0))
	// One mistake each.
	f.Add("X-Sig", "s\x00\x016=", "", "", "{timestamp}.{body}", "X-Time", "", "", "", "", uint32(0))
	f.Add("X-Sig", "", "", "", "{timestamp}.{body}", "x-sig", "", "", "", "", uint32(0))
	f.Add("X Sig", "", "", "", "{timestamp}.{body}", "X-Time", "", "", "", "", uint32(0))
	f.Add("X-Sig", "", "v,1", "", "{timestamp}.{body}", "", "t", "", "", "", uint32(0))
	f.Add("X-Sig", "", "t", "", "{timestamp}.{body}", "", "t", "", "", "", uint32(0))
	f.Add("X-Sig", "", "", "", "{body}", "X-Time", "", "", "", "", uint32(0))
	// Parts behind the body, fields, digests, other encodings, and several headers.
	f.Add("X-Sig", "", "", "", "{method}{url}{body}{timestamp}", "X-Time", "", "", "", "https://example.com", uint32(0x14))
	f.Add("X-Sig", "s=", "", "", "{digest:sha256:hex}.{field:type}|{id}/{body}.{header:X-Sig-2}", "", "", "", "X-Id", "", uint32(0x08))
	f.Add("X-Sig", "", "v1", "", "{path}\n{timestamp}{body}", "", "t", "", "", "https://example.com?x", uint32(0x70c))
	f.Add("X-Sig", "", "", "", "{timestamp}{field:id}", "", "", "id", "", "", uint32(0x1800))
	f.Add("X-Sig", "", "", "", "{field:id}", "", "", "", "", "", uint32(0x2800))
	keys := ring(f, signing.Key{Secret: textSecret(f, secretA)})
	f.Fuzz(func(t *testing.T, header, prefix, label, headers, signedText, timeHeader, timeLabel, timeField, idHeader, url string, choices uint32) {
		var more []string
		if choices>>12&1 == 1 {
			more = []string{"X-Sig-2"}
		}
		repeats := choices>>11&1 == 1
		s, err := signing.NewDescribed(signing.Description{
			MoreSignatureHeaders: more, SignatureRepeats: repeats, SpacedList: choices>>10&1 == 1,
			Name: "own", SignatureHeader: header, SignaturePrefix: prefix, SignatureLabel: label, Separator: []byte{0, ',', ' ', '&'}[choices>>8&3],
			Algorithm: signing.Algorithm(choices & 3), Encoding: signing.Encoding(choices >> 2 & 3), Key: signing.KeyForm(choices >> 13 & 3),
			Signed: signedText, URL: url, HeadersLabel: headers, TimestampHeader: timeHeader, TimestampLabel: timeLabel, TimestampField: timeField,
			TimestampFormat: signing.TimestampFormat(choices >> 4 & 3), SignWith: signing.SignWith(choices >> 6 & 3), IDHeader: idHeader,
		})
		if err != nil {
			if s != nil || !strings.HasPrefix(err.Error(), `signing: description of "own": `) {
				t.Fatalf("%v", err)
			}
			return
		}
		h := http.Header{}
		if s.Sign(h, eventID, now, body, keys) != nil {
			return // Ed25519 without such a key, a body without the time
		}
		for name, values := range h {
			if len(values) != 1 || strings.ContainsFunc(name+values[0], func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("%q: %q cannot be sent", name, values)
			}
		}
		verify := func(body []byte, at time.Time) error {
			before := s.Precheck(h, at, tolerance)
			_, err := s.Verify(signing.Message{Header: h, Body: body, URL: url}, keys, at, tolerance)
			if before != nil && err == nil {
				t.Fatalf("Precheck refuses with %v what Verify takes", before)
			}
			return err
		}
		if err := verify(body, now); err != nil {
			t.Fatalf("%q does not verify what it signed: %v", h, err)
		}
		covered := strings.Contains(signedText, "{body}") || strings.Contains(signedText, "{digest:")
		if covered && verify(append([]byte{' '}, body...), now) == nil {
			t.Fatal("another body verifies")
		}
		if (timeHeader != "" || timeLabel != "") && verify(body, now.Add(tolerance+2*time.Second)) == nil {
			t.Fatal("it verifies outside the window")
		}
		if timeHeader != "" {
			later := http.Header{}
			if err := s.Sign(later, eventID, now.Add(time.Minute), body, keys); err != nil {
				t.Fatal(err)
			}
			was := h.Get(timeHeader)
			h.Set(timeHeader, later.Get(timeHeader))
			if verify(body, now) == nil {
				t.Fatal("it verifies under another time")
			}
			h.Set(timeHeader, was)
		}
		for name := range h {
			h.Add(name, h.Get(name))
			if verify(body, now) == nil && http.CanonicalHeaderKey(header) == name && !repeats {
				t.Fatalf("%s is there twice, and it verifies", name)
			}
			h[name] = h[name][:1]
		}
	})
}
