package signing_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/surehook/surehook/signing"
)

// Whatever the headers are, each scheme's halves answer alike, no error repeats a
// header's value, and nothing that was not signed verifies.
func FuzzSchemeHeaders(f *testing.F) {
	f.Add(uint8(3), "t=1700000000,v1="+strings.Repeat("0f", 32), "1700000000", int64(1700000000), []byte("{}"))
	f.Add(uint8(8), "ts=1;h1=;h1=x;;ts=2", "", int64(0), []byte{})
	f.Add(uint8(9), "EiqWE3SXTPQpPulBV6OSuuGziIishZNc1VwNZYqZrHU=", "2023-11-14T22:13:20.5+01:00", int64(1)<<62, []byte("\xff"))
	for which := range senders(f) { // what is malformed, and long enough to be told from other text
		f.Add(uint8(which), "not a signature of any scheme", "1700000000", int64(1700000000), []byte("{}"))
	}
	f.Add(uint8(14), "t=1700000000,h=x-a  x-b,v1="+strings.Repeat("0", 64), "x", int64(-1), []byte(`{"webhookTimestamp":1}`))
	all := senders(f)
	f.Fuzz(func(t *testing.T, which uint8, signature, timestamp string, clock int64, body []byte) {
		s := all[int(which)%len(all)]
		keys := s.keys(t, secretA)
		h := http.Header{s.header: {signature}}
		for _, name := range []string{"Webhook-Timestamp", "Svix-Timestamp", "X-Slack-Request-Timestamp", "X-Zendesk-Webhook-Signature-Timestamp", "X-Signature-Timestamp", "X-Own-Time"} {
			h[name] = []string{timestamp}
		}
		for _, name := range []string{"Webhook-Id", "Svix-Id", "X-Own-Id"} {
			h[name] = []string{eventID}
		}
		at := time.Unix(clock, 0)
		before := s.scheme.Precheck(h, at, tolerance)
		v, err := s.scheme.Verify(signing.Message{Header: h, Body: body}, keys, at, tolerance)
		switch {
		case err == nil:
			t.Fatalf("%s: verified %+v", s.scheme.Name(), v)
		case before == nil && !errors.Is(err, signing.ErrSignatureMismatch):
			t.Fatalf("%s: Precheck accepts what Verify answers with %v", s.scheme.Name(), err)
		case before != nil && before.Error() != err.Error():
			t.Fatalf("%s: Precheck says %v, Verify %v", s.scheme.Name(), before, err)
		case len(signature) > 24 && strings.Contains(err.Error(), signature):
			t.Fatalf("%s: %v", s.scheme.Name(), err)
		}
	})
}

// A list of signatures verifies if and only if it has the right one among the sixteen
// that are allowed, as a simpler reading of it says.
func FuzzSignatureLists(f *testing.F) {
	f.Add("", ",v1=00")
	f.Add("v1=0f,", ",,t")
	f.Add("v1="+strings.Repeat("0", 64)+",", "")
	f.Add("t=1700000000,", "")
	f.Add("t=,t,", "")
	f.Add("", strings.Repeat(",v1=00", 15)) // as many signatures as there may be, one more, and the same of parts
	f.Add("", strings.Repeat(",v1=00", 16))
	f.Add("", strings.Repeat(",v2=00", 30))
	f.Add("", strings.Repeat(",v2=00", 31))
	f.Add("v1=x,v1=y,v2=z=,", ",v1="+strings.Repeat("0", 64))
	f.Fuzz(func(t *testing.T, before, after string) {
		keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
		good := timestampBodyMAC(secretA, seconds(now), body)
		value := before + "t=" + seconds(now) + ",v1=" + good + after
		m := signing.Message{Header: http.Header{"Stripe-Signature": {value}}, Body: body}
		_, err := signing.Stripe().Verify(m, keys, now, tolerance)

		times, signatures, right := 0, 0, 0
		pairs := strings.Split(value, ",")
		for _, pair := range pairs {
			switch label, text, _ := strings.Cut(pair, "="); label {
			case "t":
				if times++; text != seconds(now) {
					times++
				}
			case "v1":
				signatures++
				if text == good {
					right++
				}
			}
		}
		want := times == 1 && right > 0 && signatures <= 16 && len(pairs) <= 32
		if want != (err == nil) {
			t.Fatalf("%q: %v", value, err)
		}
	})
}

// Each format of times takes what it writes itself, and no other text for the same
// signature.
func FuzzTimestamps(f *testing.F) {
	for _, text := range []string{"1700000000", "1700000000000", "2023-11-14T22:13:20Z", "2023-11-14T22:13:20.5+00:00", "", "-1", "0", "９", "01700000000", "170000000000x", "1700000000-00", "2023-11-14T2:13:20.5Z", "2023-11-14T22:13:20,5Z"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
		for _, format := range []signing.TimestampFormat{signing.UnixSeconds, signing.UnixMillis, signing.RFC3339Time} {
			s, err := signing.NewDescribed(signing.Description{
				Name: "times", SignatureHeader: "X-Sig", TimestampHeader: "X-Time", TimestampFormat: format, Signed: "{timestamp}.{body}",
			})
			if err != nil {
				t.Fatal(err)
			}
			m := signing.Message{Header: http.Header{"X-Time": {text}, "X-Sig": {timestampBodyMAC(secretA, text, body)}}, Body: body}
			// With all the time there is as a tolerance, the form alone decides.
			v, err := s.Verify(m, keys, now, 1<<63-1)
			if err != nil {
				if !errors.Is(err, signing.ErrMalformedHeader) && !errors.Is(err, signing.ErrTimestampOutsideWindow) {
					t.Fatal(err)
				}
				continue
			}
			if !timestampForms[format].MatchString(text) {
				t.Fatalf("%q is taken for a time", text)
			}
			again := http.Header{}
			if err := s.Sign(again, "", v.Timestamp, body, keys); err != nil {
				t.Fatal(err)
			}
			written := again.Get("X-Time")
			if format == signing.UnixSeconds && written != text || format == signing.UnixMillis && written[:len(written)-3] != text[:len(text)-3] {
				t.Fatalf("%q is taken for %q", text, written)
			}
			if format == signing.RFC3339Time {
				if read, err := time.Parse(time.RFC3339, text); err != nil || read.Unix() != v.Timestamp.Unix() {
					t.Fatalf("%q is taken for %v", text, v.Timestamp)
				}
			}
		}
	})
}

var timestampForms = map[signing.TimestampFormat]*regexp.Regexp{
	signing.UnixSeconds: regexp.MustCompile(`^[1-9][0-9]{0,10}$`),
	signing.UnixMillis:  regexp.MustCompile(`^[1-9][0-9]{3,13}$`),
	signing.RFC3339Time: regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$`),
}

// However long an id is and whatever it and the body have in them: a signature holds for
// one id and one body, and not for another split of the text that is signed.
func FuzzIDs(f *testing.F) {
	const at = "2023-11-14T22:13:20Z" // now
	for _, id := range []string{eventID, "evt:1", "a.b", "a-1", "a=b=", "", " ", "é"} {
		for _, body := range []string{`{}`, "." + at + ".{}", ":" + at + ":{}", at + "x", "-" + at + ".x", "." + at + ".." + at + "."} {
			f.Add(id, []byte(body))
		}
	}
	keys := ring(f, signing.Key{Secret: textSecret(f, secretA)})
	f.Fuzz(func(t *testing.T, id string, body []byte) {
		for _, between := range [][2]string{{".", "."}, {":", "."}, {"", ""}, {"-", "."}, {"::", ""}, {"\n", "\n"}, {"_", ":"}} {
			s, err := signing.NewDescribed(signing.Description{
				Name: "ids", SignatureHeader: "X-Sig", IDHeader: "X-Id", TimestampHeader: "X-Time", TimestampFormat: signing.RFC3339Time,
				Signed: "{id}" + between[0] + "{timestamp}" + between[1] + "{body}",
			})
			if err != nil {
				t.Fatal(err)
			}
			h := http.Header{}
			if err := s.Sign(h, id, now, body, keys); err != nil {
				if !errors.Is(err, signing.ErrMalformedHeader) {
					t.Fatal(err)
				}
				continue
			}
			middle := between[0] + h.Get("X-Time") + between[1]
			text := id + middle + string(body)
			for i := range text {
				if !strings.HasPrefix(text[i:], middle) {
					continue
				}
				h.Set("X-Id", text[:i])
				v, err := s.Verify(signing.Message{Header: h, Body: []byte(text[i+len(middle):])}, keys, now, tolerance)
				if ok := err == nil; ok != (i == len(id)) || ok && v.ID != id {
					t.Fatalf("the id %q and the body %q of %q: %v", text[:i], text[i+len(middle):], text, err)
				}
			}
		}
	})
}

// A fact is read as encoding/json reads it, if its name is there once, in whatever
// spelling, and it is a text or a plain number; and otherwise not at all.
func FuzzFacts(f *testing.F) {
	f.Add([]byte(`{"id":"evt_1","type":"a.b","created":1}`))
	f.Add([]byte(`{"id":"\u0065","i\u0064":1}`))
	f.Add([]byte(" {\"a\":[{\"id\":\"x\"},\"}\"],\"id\" : 12 }\n"))
	f.Add([]byte(`{"a":"\"","b":"\\","id":"x"}`))
	f.Add([]byte(`{"a":"\",\"id\":\"y\"","id":"x"}`))
	f.Add([]byte("{\"id\":\"\xff\"}"))
	f.Add([]byte(`{"id":"\ud800"}`))
	f.Add([]byte(`{"id":-1}`))
	f.Add([]byte(`{"id":1e3}`))
	f.Add([]byte(`{"a":{"id":1},"id":null}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		text, found := signing.JSONText(doc, "id")
		var all map[string]json.RawMessage
		err := json.Unmarshal(doc, &all)
		if err != nil {
			if found {
				t.Fatalf("%q is found in what is no object: %v", text, err)
			}
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(all["id"]))
		d.UseNumber()
		_ = d.Decode(&want)
		if found && want != text && want != json.Number(text) {
			t.Fatalf("%q is found where %v is", text, want)
		}
		if there := timesNamed(t, doc, "id") == 1 && plainFact(all["id"], want); found != there {
			t.Fatalf("it is %v that %s is found in %q", found, all["id"], doc)
		}
	})
}

// timesNamed is how often an object, which is valid, has a name.
func timesNamed(t *testing.T, object []byte, name string) (n int) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		got, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		if got == name {
			n++
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// plainFact tells whether a value is a text of which nothing had to be replaced, or a
// number in digits alone.
func plainFact(raw []byte, value any) bool {
	switch v := value.(type) {
	case string:
		return utf8.Valid(raw) && (!strings.ContainsRune(v, utf8.RuneError) || !bytes.ContainsRune(raw, '\\'))
	case json.Number:
		return strings.Trim(v.String(), "0123456789") == ""
	}
	return false
}

// Forms that are the same to net/url have the same signature; with a parameter more, they
// do not.
func FuzzTwilioForms(f *testing.F) {
	f.Add([]byte("A=1&B=2"), []byte("C=3"))
	f.Add([]byte("a%20b=+&&="), []byte("%zz"))
	f.Add([]byte("A=2&A=1&A=10"), []byte("%4"))
	f.Add([]byte("a=%4"), []byte{})
	f.Add([]byte{}, []byte("C=3"))
	f.Fuzz(func(t *testing.T, form, more []byte) {
		keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
		s, err := signing.NewTwilio("https://example.com/sms")
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		if s.Sign(h, eventID, now, form, keys) != nil {
			return // no form
		}
		pairs := bytes.Split(form, []byte{'&'})
		for i, j := 0, len(pairs)-1; i < j; i, j = i+1, j-1 {
			pairs[i], pairs[j] = pairs[j], pairs[i]
		}
		same := signing.Message{Header: h, Body: bytes.Join(pairs, []byte{'&'})}
		if _, err := s.Verify(same, keys, now, tolerance); err != nil {
			t.Fatalf("%q in another order, %q: %v", form, same.Body, err)
		}
		for _, name := range []string{"\x01", "\xff"} { // before all others, and behind them
			if bytes.Contains(form, []byte(name)) || bytes.Contains(bytes.ToLower(form), fmt.Appendf(nil, "%%%02x", name)) {
				continue
			}
			other := append(append(bytes.Clone(form), "&"+name+"="...), more...)
			if _, err := s.Verify(signing.Message{Header: h, Body: other}, keys, now, tolerance); err == nil {
				t.Fatalf("%q passes for %q", other, form)
			}
		}
	})
}
