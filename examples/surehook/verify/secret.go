package verify

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

// namedText is the text of a secret and what it is called in the report.
type namedText struct {
	name, text string
}

func secretLines(file string) (texts []string, err error) {
	all, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if IsUTF16(all) {
		return nil, fmt.Errorf("%s is in UTF-16, as programs on Windows save files: save it as UTF-8", file)
	}
	var block strings.Builder // a key in PEM, up to its last line
	for line := range strings.Lines(strings.TrimPrefix(string(all), mark)) {
		// White space beyond the line's end is left for the parser to complain of.
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if block.Len() > 0 || strings.HasPrefix(line, beginPEM) {
			block.WriteString(line + "\n")
			if strings.HasPrefix(line, "-----END ") {
				texts = append(texts, block.String())
				block.Reset()
			}
			continue
		}
		if line != "" {
			texts = append(texts, line)
		}
	}
	switch {
	case block.Len() > 0:
		err = errors.New("a key in PEM has no END in it: give the whole key")
	case texts == nil:
		err = errors.New("there is no secret in it")
	}
	return texts, err
}

// IsUTF16 reports whether a file is in UTF-16, with a byte order mark or without one. No text
// that surehook reads from a file has a NUL.
func IsUTF16(file []byte) bool {
	return bytes.HasPrefix(file, []byte("\xff\xfe")) || bytes.HasPrefix(file, []byte("\xfe\xff")) || bytes.IndexByte(file, 0) >= 0
}

const beginPEM = "-----BEGIN "

// Secret reads a secret of this module's own, or an Ed25519 key in PEM.
func Secret(text string) (signing.Secret, error) {
	if strings.HasPrefix(text, beginPEM) {
		return signing.ParseEd25519Key(text)
	}
	return signing.ParseSecret(text)
}

// keyring reads a secret in the way that its sender shows it.
func keyring(c candidate, n namedText) (*signing.Keyring, error) {
	read := Secret
	switch {
	case strings.HasPrefix(n.text, beginPEM) && c.vendor.Key != vendors.ECDSA: // another vendor's Ed25519 key is the same in PEM
	case c.vendor.Name != "":
		read = c.vendor.Secret
	case c.name != "timestamp-body":
		read = signing.ParseTextSecret
	}
	secret, err := read(n.text)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be a secret of this scheme: %w", n.name, err)
	}
	return signing.NewKeyring(signing.Key{ID: n.name, Secret: secret})
}
