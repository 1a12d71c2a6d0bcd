package main

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// integer is an integer of a request. A number without a fractional part is one in whatever way
// it is written: 100, 100.0 and 1e2 are the same (JSON Schema 2020-12, section 4.2.3), and
// clients that have floating-point numbers alone write what they like.
type integer int64

// UnmarshalJSON implements json.Unmarshaler. Its error is that of encoding/json, which adds the
// field.
func (i *integer) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	n, ok := wholeNumber(string(text))
	if !ok {
		return &json.UnmarshalTypeError{Value: "number " + string(text), Type: reflect.TypeFor[int64]()}
	}
	*i = integer(n)
	return nil
}

// wholeNumber is a JSON number's value, if that has no fractional part and fits. It makes no
// number as long as an exponent can ask for.
func wholeNumber(number string) (int64, bool) {
	mantissa, power, _ := strings.Cut(strings.ToLower(number), "e")
	rest, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(rest, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return 0, true
	}
	exponent := 0
	if power != "" {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil {
			return 0, false
		}
	}
	significant := strings.TrimRight(digits, "0")
	zeros := exponent - len(fraction) + len(digits) - len(significant)
	const most = 19 // digits of an int64
	if zeros < 0 || zeros > most {
		return 0, false
	}
	if negative {
		significant = "-" + significant
	}
	n, err := strconv.ParseInt(significant+strings.Repeat("0", zeros), 10, 64)
	return n, err == nil
}
