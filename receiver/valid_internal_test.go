package receiver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzValidJSON compares with encoding/json, which decides.
func FuzzValidJSON(f *testing.F) {
	for _, text := range []string{
		"", " ", "{}", "[]", `""`, "0", "-0", "-", "01", "1.", "1.5e+7", "1e", "1E-", ".5", "true", "tru", "nul", "falsee",
		`{"a":1}`, `{"a":1,}`, `{"a" 1}`, `{a:1}`, `{,}`, "[1,2,]", "[,]", "[1 2]", `[1]]`, `{"a":[{"b":null}]} `,
		`"\u12aF"`, `"\u12g0"`, `"\u12"`, `"\x"`, `"\`, "\"\n\"", "\"\x1f\"", "\"\x7f\"", `"12345678`, `"1234567\"8"`,
		`"\\"`, `"\ud800"`, "\"\xff\"", "\"ü😀 and quite a bit more of it\"", "\ufeff{}", "1 2", "{}x", "[", "{\"a\":", "\t\r\n 1",
		strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
		strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		require.Equal(t, json.Valid(text), validJSON(text))
	})
}
