package rules

import (
	"strconv"
	"strings"
)

// Decimal writes numbers with a full stop behind each.
func Decimal(numbers ...int64) string {
	var b []byte
	for _, n := range numbers {
		b = append(strconv.AppendInt(b, n, 10), '.')
	}
	return string(b)
}

// ReadDecimal reads the text that Decimal writes for this many numbers, and returns
// false for any other text and for negative numbers.
func ReadDecimal(text string, into ...*int64) bool {
	rest := text
	numbers := make([]int64, len(into))
	for i := range into {
		var digits string
		digits, rest, _ = strings.Cut(rest, ".")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 {
			return false
		}
		numbers[i], *into[i] = n, n
	}
	return Decimal(numbers...) == text
}
