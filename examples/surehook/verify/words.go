package verify

import (
	"errors"
	"strconv"
	"strings"
)

// shellWords splits a command as a POSIX shell does (Shell Command Language, section
// 2.2), with the $'…' of Bash that browsers write. Nothing is expanded: what a shell
// would replace, as $NAME or `command`, is an error, since nobody knows by what.
func shellWords(text string) (words []string, err error) {
	var word strings.Builder
	begun := false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == ' ' || b == '\t' || b == '\r' || b == '\n':
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
			continue
		case b == '\\':
			if rest := text[i+1:]; strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, "\r\n") {
				i += strings.IndexByte(rest, '\n') + 1 // the line goes on
				continue
			}
			if i++; i == len(text) {
				return nil, errors.New("it ends with a backslash")
			}
			word.WriteByte(text[i])
		case b == '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return nil, errOpenQuote
			}
			word.WriteString(text[i+1 : i+1+end])
			i += end + 1
		case b == '"':
			if i, err = doubleQuoted(text, i+1, &word); err != nil {
				return nil, err
			}
		case b == '$' && strings.HasPrefix(text[i:], "$'"):
			if i, err = ansiQuoted(text, i+2, &word); err != nil {
				return nil, err
			}
		case b == '$' || b == '`':
			return nil, errExpansion
		case b == '^' && i+1 < len(text) && strings.IndexByte("\"\r\n", text[i+1]) >= 0:
			return nil, errWindows
		case strings.IndexByte("|&;<>()", b) >= 0:
			return nil, errors.New("it goes on with " + strconv.QuoteRune(rune(b)) + ": give one command alone, with its URL in quotes")
		default:
			word.WriteByte(b)
		}
		begun = true
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

var (
	errOpenQuote = errors.New("a quotation mark is not closed")
	errWindows   = errors.New("it is quoted for the command prompt of Windows, as Copy as cURL (cmd) does: take Copy as cURL (bash)")
	errExpansion = errors.New("a shell would replace a part of it ($ or `): put in what was sent, in single quotation marks")
)

// doubleQuoted reads from i on, and returns where the closing mark is.
func doubleQuoted(text string, i int, word *strings.Builder) (int, error) {
	for ; i < len(text); i++ {
		switch b := text[i]; b {
		case '"':
			return i, nil
		case '$', '`':
			return i, errExpansion
		case '\\':
			if i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0 {
				if i++; text[i] != '\n' {
					word.WriteByte(text[i])
				}
				continue
			}
			word.WriteByte(b)
		default:
			word.WriteByte(b)
		}
	}
	return i, errOpenQuote
}

// ansiQuoted reads the escapes of $'…', and returns where the closing mark is.
func ansiQuoted(text string, i int, word *strings.Builder) (int, error) {
	for ; i < len(text); i++ {
		b := text[i]
		if b == '\'' {
			return i, nil
		}
		if b != '\\' {
			word.WriteByte(b)
			continue
		}
		if i++; i == len(text) {
			break
		}
		if at := strings.IndexByte("abefnrtv\\'\"?", text[i]); at >= 0 {
			word.WriteByte("\a\b\x1b\f\n\r\t\v\\'\"?"[at])
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[i]]
		end := i + 1
		for end < len(text) && end-i-1 < digits && strings.IndexByte("0123456789abcdefABCDEF", text[end]) >= 0 {
			end++
		}
		n, err := strconv.ParseUint(text[i+1:end], 16, 32)
		if err != nil {
			return i, errors.New(`an escape in $'…' must be one of \n \r \t \a \b \e \f \v \\ \' \" \? \xHH \uHHHH \UHHHHHHHH`)
		}
		if text[i] == 'x' {
			word.WriteByte(byte(n))
		} else {
			word.WriteRune(rune(n))
		}
		i = end - 1
	}
	return i, errOpenQuote
}
