package signing

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// mistake is a text that somebody may have taken for the body or for the key.
type mistake struct {
	what  string
	bytes []byte
}

// with adds a mistake, unless an earlier one has the same bytes. The earlier one is more
// likely, so it alone is reported.
func with(all []mistake, what string, made []byte) []mistake {
	if slices.ContainsFunc(all, func(m mistake) bool { return bytes.Equal(m.bytes, made) }) {
		return all
	}
	return append(all, mistake{what, made})
}

func secretMistakes(text string) (all []mistake) {
	add := func(what string, key []byte) {
		if len(key) > 0 {
			all = with(all, what, key)
		}
	}
	bare := strings.TrimPrefix(text, prefixHMAC)
	add("the text", []byte(text))
	for _, coding := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
		if raw, err := coding.DecodeString(bare); err == nil {
			add("the decoded base64", raw)
		}
	}
	if raw, err := hex.DecodeString(bare); err == nil {
		add("the decoded hex", raw)
	}
	for _, space := range []string{"\n", "\r\n", " "} {
		add("the text with white space behind it ("+strconv.Quote(space)+")", []byte(text+space))
	}
	add("the text with white space before it", []byte(" "+text))
	add("the text in quotation marks", []byte(`"`+text+`"`))
	add("the base64", []byte(base64.StdEncoding.EncodeToString([]byte(text))))
	return all
}

func bodyMistakes(body []byte) (all []mistake) {
	add := func(what string, signed []byte) {
		if !bytes.Equal(signed, body) {
			all = with(all, what, signed)
		}
	}
	const bom = "\ufeff"
	crlf := bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	add("white space around it was added", bytes.TrimSpace(body))
	add("the newline at its end was removed", append(bytes.Clone(body), '\n'))
	add("its line ends were CR LF and are LF now", crlf)
	add("its line ends were LF and are CR LF now", bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")))
	add("a byte order mark was added", bytes.TrimPrefix(body, []byte(bom)))
	add("its byte order mark was removed", append([]byte(bom), body...))
	if raw, err := base64.StdEncoding.DecodeString(string(body)); err == nil {
		add("it was put into base64, as API gateways do: decode it before verifying", raw)
	}
	if plain, ok := inflate(body); ok {
		add("it was compressed: the signature is of the uncompressed body", plain)
	}
	if !json.Valid(body) {
		return all
	}
	const parsed = "it was parsed and serialised again: verify the raw bytes, before anything parses them"
	var compact, indented bytes.Buffer
	_ = json.Compact(&compact, body)
	_ = json.Indent(&indented, compact.Bytes(), "", "  ")
	spaced := spacedJSON(compact.Bytes())
	for _, form := range [][]byte{
		compact.Bytes(), indented.Bytes(), spaced,
		escapedJSON(compact.Bytes()), escapedJSON(spaced), // non-ASCII characters as \u…
		bytes.ReplaceAll(compact.Bytes(), []byte("/"), []byte(`\/`)),
		bytes.ReplaceAll(escapedJSON(compact.Bytes()), []byte("/"), []byte(`\/`)),
	} {
		add(parsed, form)
	}
	if sorted, err := sortedJSON(body); err == nil {
		add(parsed, sorted)
	}
	return all
}

// inflate undoes gzip (RFC 1952), up to maxDiagnosed bytes.
func inflate(body []byte) ([]byte, bool) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, false
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxDiagnosed+1))
	return plain, err == nil && len(plain) <= maxDiagnosed
}

// spacedJSON has a space behind each comma and colon, as Python's json.dumps writes.
func spacedJSON(compact []byte) []byte {
	out := make([]byte, 0, len(compact)+len(compact)/8)
	inside := false
	for i := 0; i < len(compact); i++ {
		c := compact[i]
		out = append(out, c)
		switch {
		case c == '"':
			inside = !inside
		case inside && c == '\\':
			i++
			out = append(out, compact[i])
		case !inside && (c == ',' || c == ':'):
			out = append(out, ' ')
		}
	}
	return out
}

// escapedJSON has every character beyond ASCII as \uXXXX, which is only found in
// strings.
func escapedJSON(text []byte) []byte {
	var out []byte
	for _, r := range string(text) {
		if r < 0x80 {
			out = append(out, byte(r))
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = append(out, `\u`...)
			out = append(out, hex.EncodeToString([]byte{byte(unit >> 8), byte(unit)})...)
		}
	}
	return out
}

// sortedJSON returns the body as Go's encoding/json writes a map.
func sortedJSON(body []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
