package signing_test

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

// vector is one of testdata/vectors/vectors.json, whose README says what its fields are.
type vector struct {
	Scheme     string
	Name       string
	Keys       []struct{ Form, Value string }
	Now        int64
	Tolerance  int64
	URL        string
	RequestURL string `json:"request_url"`
	Headers    [][2]string
	Body       string
	BodyBase64 []byte `json:"body_base64"`
	Verdict    string
	Reason     string
	Timestamp  int64
	ID         string
}

func (v vector) scheme(t *testing.T) signing.Scheme {
	t.Helper()
	switch v.Scheme {
	case "square":
		return square(t, v.URL)
	case "twilio":
		return newTwilio(t, v.URL)
	}
	for _, s := range senders(t) {
		if s.scheme.Name() == v.Scheme {
			return s.scheme
		}
	}
	t.Fatalf("no scheme %q", v.Scheme)
	return nil
}

func (v vector) keys(t *testing.T) *signing.Keyring {
	t.Helper()
	var keys []signing.Key
	for _, k := range v.Keys {
		parse := map[string]func(string) (signing.Secret, error){
			"text": signing.ParseTextSecret, "whsec": signing.ParseSecret, "ed25519-hex": signing.ParseHexPublicKey,
		}[k.Form]
		s, err := parse(k.Value)
		require.NoError(t, err)
		keys = append(keys, signing.Key{Secret: s})
	}
	return ring(t, keys...)
}

// The vectors come from another implementation in another language.
func TestVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors/vectors.json")
	require.NoError(t, err)
	var file struct {
		Format  int
		Vectors []vector
	}
	require.NoError(t, json.Unmarshal(data, &file))
	require.Equal(t, 1, file.Format)
	require.GreaterOrEqual(t, len(file.Vectors), 300)
	reasons := map[string]error{
		"missing": signing.ErrMissingHeader, "repeated": signing.ErrRepeatedHeader, "malformed": signing.ErrMalformedHeader,
		"window": signing.ErrTimestampOutsideWindow, "mismatch": signing.ErrSignatureMismatch,
	}
	verdicts := map[string]int{}
	for _, v := range file.Vectors {
		what := v.Scheme + ": " + v.Name
		m := signing.Message{URL: v.RequestURL, Header: http.Header{}, Body: []byte(v.Body)}
		if v.BodyBase64 != nil {
			m.Body = v.BodyBase64
		}
		for _, h := range v.Headers {
			if http.CanonicalHeaderKey(h[0]) == h[0] {
				m.Header.Add(h[0], h[1])
			} else {
				m.Header[h[0]] = append(m.Header[h[0]], h[1]) // as maps from elsewhere have them
			}
		}
		scheme, keys, at, tolerance := v.scheme(t), v.keys(t), time.Unix(v.Now, 0), time.Duration(v.Tolerance)*time.Second
		before := scheme.Precheck(m.Header, at, tolerance)
		got, err := scheme.Verify(m, keys, at, tolerance)
		verdicts[v.Verdict]++
		if v.Verdict == "accept" {
			require.NoError(t, err, what)
			require.NoError(t, before, what)
			require.Equal(t, v.ID, got.ID, what)
			if v.Timestamp == 0 {
				require.Zero(t, got.Timestamp, what)
			} else {
				require.Equal(t, v.Timestamp, got.Timestamp.Unix(), what)
			}
			continue
		}
		require.Equal(t, "refuse", v.Verdict, what)
		require.ErrorIs(t, err, reasons[v.Reason], what)
		require.Zero(t, got, what)
		if v.Reason != "mismatch" && v.Scheme != "linear" {
			require.Error(t, before, "before the body is read: %s", what)
		}
	}
	require.Greater(t, verdicts["accept"], 100)
	require.Greater(t, verdicts["refuse"], 200)
}
