package verify

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
)

// The options of curl that change the request, and those that do not. Any other could
// be either, and is refused by its name.
var (
	curlData    = []string{"-d", "--data", "--data-ascii", "--data-raw", "--data-binary", "--json"}
	curlValue   = []string{"-o", "--output", "-m", "--max-time", "--connect-timeout", "-w", "--write-out", "-x", "--proxy", "--cacert", "--resolve", "--connect-to", "--retry", "-u", "--user", "-b", "--cookie", "-c", "--cookie-jar"}
	curlSwitch  = []string{"-s", "--silent", "-S", "--show-error", "-v", "--verbose", "-i", "--include", "-k", "--insecure", "-L", "--location", "-f", "--fail", "--fail-with-body", "--compressed", "--http1.1", "--http2", "-N", "--no-buffer", "-g", "--globoff", "-#", "--progress-bar"}
	curlHeaders = map[string]string{"-A": "User-Agent", "--user-agent": "User-Agent", "-e": "Referer", "--referer": "Referer"}
)

type curl struct {
	method string
	header http.Header
	urls   []string
	data   []string
	json   bool
}

func readCurl(text string) (capture, error) {
	words, err := shellWords(text)
	if err != nil {
		return capture{}, fmt.Errorf("reading the curl command: %w", err)
	}
	cmd := curl{header: http.Header{}}
	if err := cmd.read(words[1:]); err != nil {
		return capture{}, fmt.Errorf("reading the curl command: %w", err)
	}
	return cmd.capture()
}

func (c *curl) read(words []string) error {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		option, value, attached := splitOption(word)
		if !strings.HasPrefix(word, "-") || word == "-" {
			c.urls = append(c.urls, word)
			continue
		}
		if slices.Contains(curlSwitch, option) {
			if attached { // several in one word: -sS
				words = append([]string{"-" + value}, words...)
			}
			continue
		}
		if !c.takesValue(option) {
			return fmt.Errorf("the option %s is not known here: leave it out if it does not change the request", option)
		}
		if !attached {
			if len(words) == 0 {
				return fmt.Errorf("the option %s has no value", option)
			}
			value, words = words[0], words[1:]
		}
		if err := c.set(option, value); err != nil {
			return err
		}
	}
	return nil
}

// splitOption takes -XPOST and --request=POST apart: curl itself knows the first form
// only, and the other one is plain.
func splitOption(word string) (option, value string, attached bool) {
	if strings.HasPrefix(word, "--") {
		return strings.Cut(word, "=")
	}
	if len(word) > 2 && word[0] == '-' {
		return word[:2], word[2:], true
	}
	return word, "", false
}

func (c *curl) takesValue(option string) bool {
	return slices.Contains([]string{"-X", "--request", "-H", "--header", "--url"}, option) ||
		slices.Contains(curlData, option) || slices.Contains(curlValue, option) || curlHeaders[option] != ""
}

func (c *curl) set(option, value string) error {
	switch option {
	case "-X", "--request":
		c.method = value
	case "--url":
		c.urls = append(c.urls, value)
	case "-H", "--header":
		return c.setHeader(value)
	case "--data-raw":
		c.data = append(c.data, value)
	case "-d", "--data", "--data-ascii", "--data-binary", "--json":
		c.json = c.json || option == "--json"
		text, err := curlText(value, option == "--data-binary" || option == "--json")
		if err != nil {
			return fmt.Errorf("%s: %w", option, err)
		}
		c.data = append(c.data, text)
	default:
		if name := curlHeaders[option]; name != "" {
			c.header.Set(name, value)
		}
	}
	return nil
}

// setHeader adds as curl does: "Name:" removes what curl would send by itself, and
// "Name;" is an empty value.
func (c *curl) setHeader(line string) error {
	if name, ok := strings.CutSuffix(line, ";"); ok && !strings.Contains(line, ":") {
		c.header.Add(name, "")
		return nil
	}
	name, value, ok := strings.Cut(line, ":")
	if !ok {
		return errors.New(`a header is not of the form "Name: value"`)
	}
	if value = strings.Trim(value, " \t"); value != "" {
		c.header.Add(name, value)
	}
	return nil
}

// curlText reads @FILE; -d drops its line ends, as curl does.
func curlText(value string, exact bool) (string, error) {
	name, isFile := strings.CutPrefix(value, "@")
	if !isFile {
		return value, nil
	}
	if name == "-" {
		return "", errors.New("the body was read from standard input, and is not in the command: put it into a file")
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	// The command may name a device that never ends.
	text, err := io.ReadAll(io.LimitReader(f, maxCapture+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxCapture {
		return "", fmt.Errorf("%s is larger than %d MiB", name, maxCapture>>20)
	}
	if exact {
		return string(text), nil
	}
	return strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(string(text)), nil
}

func (c *curl) capture() (capture, error) {
	if len(c.urls) != 1 {
		return capture{}, fmt.Errorf("the curl command has %d URLs: it must have one", len(c.urls))
	}
	between := "&"
	if c.json {
		between = ""
	}
	var got capture
	m := &got.message
	m.URL, m.Header, m.Method, m.Body = c.urls[0], c.header, c.method, []byte(strings.Join(c.data, between))
	if strings.ContainsFunc(m.Method, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return capture{}, fmt.Errorf("the method %q is not valid", m.Method) // nor may it control the terminal
	}
	if m.Method == "" {
		m.Method = http.MethodGet
		if c.data != nil {
			m.Method = http.MethodPost
		}
	}
	if c.data != nil && m.Header.Get("Content-Type") == "" {
		m.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if c.json {
			m.Header.Set("Content-Type", "application/json")
		}
	}
	return got, nil
}
