package verify

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/surehook/surehook/signing"
)

// A captured request is read whole or refused; written as a curl command with other
// marks around its words it is the same request.
func FuzzCapture(f *testing.F) {
	examples, err := filepath.Glob("testdata/*.[hc]*")
	if err != nil || len(examples) == 0 {
		f.Fatal("no examples: ", err)
	}
	for _, name := range examples {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("POST / HTTP/1.1\nContent-Length: 9223372036854775808\n\nx"))
	f.Add([]byte("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
	f.Add([]byte("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{\"a\":1}"))
	f.Add([]byte("POST / HTTP/1.1\r\nTransfer-Encoding: CHUNKED\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n"))
	f.Add([]byte("POST / HTTP/2\nHost: x\nContent-Length: 1\n\nabc"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Contains(text, []byte("@")) && bytes.Contains(text, []byte("curl")) {
			return // would read files
		}
		c, err := readCapture(text)
		if err != nil {
			return
		}
		m := c.message
		if m.Method == "" || m.Header == nil {
			t.Fatalf("%q has neither method nor header: %+v", text, m)
		}
		if len(m.Body) > 0 && !bytes.Contains(text, []byte("curl")) && m.Header.Get("Transfer-Encoding") == "" && !bytes.Contains(bytes.ToLower(text), []byte("chunked")) && !bytes.Contains(text, m.Body) {
			t.Fatalf("the body %q is not what %q has", m.Body, text)
		}
		if _, err := candidates(m, m.URL); err != nil && strings.Contains(err.Error(), "\x00") {
			t.Fatal(err)
		}
		// A request that was read can be written as a command, and read again.
		if strings.ContainsAny(m.URL+m.Method, "\x00") || strings.HasPrefix(m.URL, "-") || m.URL == "" || len(m.Body) == 0 {
			return
		}
		words := []string{"curl", "-X", m.Method, m.URL, "--data-raw", string(m.Body)}
		for name, values := range m.Header {
			for _, value := range values {
				if value = strings.Trim(value, " \t"); value == "" || strings.ContainsAny(name, ":;") {
					return
				}
				words = append(words, "-H", name+": "+value)
			}
		}
		if m.Header.Get("Content-Type") == "" {
			return // curl sends one of its own
		}
		again, err := readCapture([]byte(quoted(words)))
		if err != nil {
			t.Fatalf("%s: %v", quoted(words), err)
		}
		if a := again.message; a.Method != m.Method || a.URL != m.URL || !bytes.Equal(a.Body, m.Body) || !sameHeader(a, m) {
			t.Fatalf("%+v came back as %+v", m, a)
		}
	})
}

func sameHeader(a, b signing.Message) bool {
	if len(a.Header) != len(b.Header) {
		return false
	}
	for name, values := range b.Header {
		got := a.Header[http.CanonicalHeaderKey(name)]
		if len(got) != len(values) {
			return false
		}
		for i := range values {
			if got[i] != strings.Trim(values[i], " \t") {
				return false
			}
		}
	}
	return true
}

func quoted(words []string) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.TrimPrefix(strings.Replace(strings.Join(out, " "), "'curl'", "curl", 1), " ")
}

// Words in whatever marks come out as they went in.
func FuzzShellWords(f *testing.F) {
	f.Add("a b", "c'd", "", `curl $'\x41\u00eb' "a\"b"`)
	f.Add("\\", "\n", "\"", `a\`)
	f.Add("$x", "`y`", "|&;<>()", `$'\UFFFFFFFF'`)
	f.Fuzz(func(t *testing.T, a, b, c, text string) {
		want := []string{a, b, c}
		got, err := shellWords(quoted(want))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q in single marks: %q, %v", want, got, err)
		}
		double := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")
		got, err = shellWords(`"` + double.Replace(a) + `"` + " \\\n\t" + `"` + double.Replace(b) + `"`)
		if err != nil || !slices.Equal(got, want[:2]) {
			t.Fatalf("%q in double marks: %q, %v", want[:2], got, err)
		}
		words, err := shellWords(text)
		if err != nil {
			return
		}
		again, err := shellWords(quoted(words))
		if err != nil || !slices.Equal(again, words) {
			t.Fatalf("%q are the words of %q, and then %q: %v", words, text, again, err)
		}
	})
}
