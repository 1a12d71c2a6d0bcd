package verify

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestCurl(t *testing.T) {
	file := filepath.Join(t.TempDir(), "body")
	require.NoError(t, os.WriteFile(file, []byte("a\r\nb\n"), 0o600))
	for _, c := range []struct{ command, method, body, contentType string }{
		{`curl https://x`, "GET", "", ""},
		{`curl -sSXPUT https://x -d a -d b`, "PUT", "a&b", "application/x-www-form-urlencoded"},
		{`curl --request=POST --url https://x --json '{"a":' --json 1}`, "POST", `{"a":1}`, "application/json"},
		{`curl https://x -H "Content-Type: text/x" --data-binary @` + file, "POST", "a\r\nb\n", "text/x"},
		{`curl https://x -d @` + file, "POST", "ab", "application/x-www-form-urlencoded"},
		{`curl https://x --data-raw @a`, "POST", "@a", "application/x-www-form-urlencoded"},
		{"curl https://x \\\n --data-raw $'\\'\\x41\\u00eb\\n'", "POST", "'Aë\n", "application/x-www-form-urlencoded"},
		{`curl https://x --data-raw "\"\a\\"`, "POST", `"\a\`, "application/x-www-form-urlencoded"},
	} {
		got, err := readCurl(c.command)
		require.NoError(t, err, c.command)
		m := got.message
		require.Empty(t, cmp.Diff([]string{c.method, "https://x", c.body, c.contentType}, []string{m.Method, m.URL, string(m.Body), m.Header.Get("Content-Type")}), c.command)
	}
}
