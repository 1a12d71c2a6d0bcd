package verify

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing/vendors"
)

// Commands as people and browsers write them: what is signed are the bytes that curl
// would have sent.
func TestOddCurl(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	odd := "\x00\xff\r\n{\"a\": 'b'}\n\n"
	path, spaced := file("body", odd), file("a body", odd)
	const base64 = "eyJhIjoxfQ+/kw=="
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	with := func(pairs ...string) http.Header {
		h := form.Clone()
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	for _, c := range []struct {
		command, body string
		header        http.Header
	}{
		{"curl x --data-binary @" + path, odd, form},
		{"curl x --data-binary=@" + path, odd, form},
		{"curl x --data-binary '@" + spaced + "'", odd, form},
		{"curl x --data-binary @" + strings.ReplaceAll(spaced, " ", `\ `), odd, form},
		{"curl x --data-binary \"@" + spaced + "\" --data-binary @" + path, odd + "&" + odd, form},
		{"curl x -d@" + path, "\xff{\"a\": 'b'}", form},
		{"curl x --data-raw '" + base64 + "'", base64, form},
		{"curl x --data-raw " + base64, base64, form},
		{"curl x -d ''", "", form},
		{"curl x -d=a", "=a", form},
		{`curl 'x' --data-raw 'it'\''s'`, "it's", form},
		{`curl x --data-raw 'it'"'"'s'" and "more`, "it's and more", form},
		{`curl x --data-raw "{\"a\":\"\\n\"}"`, `{"a":"\n"}`, form},
		{`curl x --data-raw $'a\'b\r\n\t\\\u20ac\x00'`, "a'b\r\n\t\\€\x00", form},
		{"curl x --data-raw 'two\nlines\r\n'", "two\nlines\r\n", form},
		{"curl x \\\r\n  -H 'X-A: b' \\\r\n --data-raw 1", "1", with("X-A", "b")},
		{"\n\n$ curl x -d 1", "1", form},
		{"curl\\\n x\t-d\t1", "1", form},
		{`curl x -d 1 -HX-A:b -H'X-A:  c ' -H "X-B;"`, "1", with("X-A", "b", "X-A", "c", "X-B", "")},
		{`curl x -d 1 -H 'X-A: t=1,v1=ab:cd; e="f"'`, "1", with("X-A", `t=1,v1=ab:cd; e="f"`)},
		{`curl x -d 1 -H 'Accept:'`, "1", form},
		{`curl -sSLkd 1 x`, "1", form},
	} {
		got, err := readCapture([]byte(c.command))
		require.NoError(t, err, c.command)
		m := got.message
		require.Empty(t, cmp.Diff([]string{"POST", "x", c.body}, []string{m.Method, m.URL, string(m.Body)}), c.command)
		require.Empty(t, cmp.Diff(c.header, m.Header), c.command)
	}
	for command, want := range map[string]string{
		"curl x -d @-":             "standard input",
		"curl x --data-binary @":   "no such file",
		"curl x -d @" + folder:     "is a directory",
		"curl x -d 1 -H 'no form'": `"Name: value"`,
		"curl x y -d 1":            "has 2 URLs",
		"curl x -d '1":             "quotation mark",
		"curl x -d \"1":            "quotation mark",
		"curl x -d $'1":            "quotation mark",
		`curl x -d $'\q'`:          "an escape",
		"curl x -d 1\\":            "backslash",
		"curl x -d `id`":           "a shell would replace",
		"curl x -F a=b":            "the option -F is not known",
		`curl x -X $'P\e[2J\nx'`:   `the method "P\x1b[2J\nx" is not valid`,
	} {
		_, err := readCapture([]byte(command))
		require.ErrorContains(t, err, want, command)
	}
}

// Raw requests, as they are on the wire and as editors and log files leave them.
func TestOddHTTP(t *testing.T) {
	for _, c := range []struct{ head, body, want string }{
		{"POST /x HTTP/1.1\nHost: h\n", "{}", "{}"},
		{"POST /x HTTP/1.1\r\nHost: h\n", "{}", "{}"},
		{"\r\n\n  POST /x HTTP/1.1\nHost: h\n", "{}\n", "{}\n"},
		{"\ufeffPOST /x HTTP/1.1\nHost: h\n", "\ufeff{}", "\ufeff{}"},
		{"POST /x HTTP/2\nHost: h\n", "\n\r\na\n\nb", "\n\r\na\n\nb"},
		{"POST /x HTTP/1.1\nHost: h\nContent-Length: 4\n", "{\r\n}\r\n", "{\r\n}\r\n"}, // its line ends were changed
		{"POST /x HTTP/1.1\nHost: h\nContent-Length: 4\n", "{\r\n}\n", "{\r\n}"},       // a line end was added
		{"POST /x HTTP/1.0\nHost: h\nContent-Length: 2\n", "{}\r\n", "{}"},
		{"POST /x HTTP/1.1\nHost: h\nContent-Length: 0\n", "{}", ""},
		{"POST /x HTTP/1.1\nHost: h\nContent-Length: 9\n", "{}", "{}"},
		{"POST /x HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n", "2\n{}\n0\n\n", "2\n{}\n0\n\n"}, // not as RFC 9112 has it: a note says so
		{"POST /x HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n", "2;a=b\r\n{}\r\n1\r\n\n\r\n0\r\nT: 1\r\n\r\n", "{}\n"},
		{"POST /x HTTP/1.1\nHost: h\nX-Folded: a\n b\n", "{}", "{}"},
		{"POST /x HTTP/1.1\nHost: h\n", "eyJhIjoxfQ+/kw==\n", "eyJhIjoxfQ+/kw==\n"},
		{"POST /x HTTP/1.1\nHost: h\n", "\x00\xff", "\x00\xff"},
		{"POST /x HTTP/1.1\nHost: h\n", "", ""},
	} {
		for _, end := range []string{"\n", "\r\n"} {
			got, err := readCapture([]byte(strings.ReplaceAll(c.head, "\n", end) + end + c.body))
			require.NoError(t, err, c.head)
			m := got.message
			require.Equal(t, []string{"POST", "https://h/x", c.want}, []string{m.Method, m.URL, string(m.Body)}, "%q %q", c.head, end)
		}
	}
	for _, text := range []string{
		"", "\n", "POST", "POST /x", "POST /x HTTP/1.1", "POST /x\nHost: h\n\n", "POST /x HTTP/1.1\nno header\n\n", "POST /x HTTP/1.1\nContent-Length: -1\n\n",
		"POST /x HTTP/1.1\nContent-Length: 1\nContent-Length: 2\n\n{}", "HTTP/1.1 200 OK\n\n{}", `{"a":1}`,
	} {
		_, err := readCapture([]byte(text))
		require.Error(t, err, "%q", text)
	}
}

// Whatever the body is, it is what was sent: behind either kind of line end, with and
// without its length, in a file, and in quotes.
func FuzzBody(f *testing.F) {
	for _, body := range []string{"", "{}", "{}\n", "\r\n\r\n", strings.Repeat("\r\n", 6), "\n", "it's", "a\x00b\r", `"$x\`, "@body", "eyJhIjoxfQ=="} {
		f.Add([]byte(body))
	}
	path := filepath.Join(f.TempDir(), "body")
	file, err := os.Create(path) // it stays open: some file systems wait for the disk when one is emptied and closed
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = file.Close() })
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := file.WriteAt(body, 0); err != nil {
			t.Fatal(err)
		}
		if err := file.Truncate(int64(len(body))); err != nil {
			t.Fatal(err)
		}
		head := "POST /x HTTP/1.1\nHost: h\n"
		long := fmt.Sprintf("Content-Length: %d\n", len(body))
		behind := strings.Repeat("x", bytes.Count(body, []byte("\n"))+1) // a byte for each line would be taken for its CR
		for how, text := range map[string][]byte{
			"LF":               append([]byte(head+"\n"), body...),
			"CRLF":             append([]byte(strings.ReplaceAll(head, "\n", "\r\n")+"\r\n"), body...),
			"LF and length":    append([]byte(head+long+"\n"), append(bytes.Clone(body), behind...)...),
			"CRLF and length":  append([]byte(strings.ReplaceAll(head+long, "\n", "\r\n")+"\r\n"), body...),
			"a file":           []byte("curl x --data-binary @" + path),
			"a file, json":     []byte("curl x --json '@" + path + "'"),
			"in quotes":        []byte(quoted([]string{"curl", "x", "--data-raw", string(body)})),
			"in double quotes": []byte(`curl x --data-raw "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(string(body)) + `"`),
		} {
			got, err := readCapture(text)
			if err != nil {
				t.Fatalf("%s: %v", how, err)
			}
			if !bytes.Equal(got.message.Body, body) {
				t.Fatalf("%s: %q came back as %q", how, body, got.message.Body)
			}
		}
		got, err := readCapture([]byte("curl x -d @" + path))
		if want := strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(string(body)); err != nil || string(got.message.Body) != want {
			t.Fatalf("-d: %q came back as %q: %v", want, got.message.Body, err)
		}
	})
}

// A file of secrets as it comes from Windows.
func TestSecretLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets")
	require.NoError(t, os.WriteFile(path, []byte("\ufeffa\r\n\r\n b\n"), 0o600))
	got, err := secretLines(path)
	require.NoError(t, err)
	require.Equal(t, []string{"a", " b"}, got)

	// A key in PEM has several lines, and is one secret.
	const key = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
	require.NoError(t, os.WriteFile(path, []byte("a\r\n"+strings.ReplaceAll(key, "\n", "\r\n")+"b"), 0o600))
	got, err = secretLines(path)
	require.NoError(t, err)
	require.Equal(t, []string{"a", key, "b"}, got)
	discord, known := vendors.Find("discord")
	require.True(t, known)
	for _, c := range []candidate{{name: "standard-webhooks"}, {name: "timestamp-body"}, {name: "discord", vendor: discord}} {
		ring, err := keyring(c, namedText{"secret 1", key})
		require.NoError(t, err, c.name)
		require.NotNil(t, ring)
	}

	for text, says := range map[string]string{
		"\xff\xfea\x00\r\x00\n\x00": "is in UTF-16, as programs on Windows save files: save it as UTF-8", "\xfe\xff\x00a": "is in UTF-16", "a\x00\n\x00": "is in UTF-16",
		key[:40]: "has no END", "\n": "no secret",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err = secretLines(path)
		require.ErrorContains(t, err, says)
	}
}
