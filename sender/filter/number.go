package filter

import "bytes"

// number is a JSON number: 0.d1d2d3… × 10^exponent. It is compared without being converted,
// so nothing is lost, and a large exponent costs nothing.
type number struct {
	negative bool
	digits   []byte // from the first that is not 0 on, with a '.' in it perhaps; none: it is zero
	exponent int64
}

// farExponent stands for exponents that are beyond those of all literals.
const farExponent = 1 << 40

// maxExponent bounds the exponents of literals.
const maxExponent = 9999

func parseNumber(text []byte) (n number) {
	if len(text) > 0 && text[0] == '-' {
		n.negative, text = true, text[1:]
	}
	mantissa := text
	if e := bytes.IndexAny(text, "eE"); e >= 0 {
		mantissa = text[:e]
		n.exponent = parseExponent(text[e+1:])
	}
	point := bytes.IndexByte(mantissa, '.')
	if point < 0 {
		point = len(mantissa)
	}
	first := 0
	for first < len(mantissa) && (mantissa[first] == '0' || mantissa[first] == '.') {
		first++
	}
	if first == len(mantissa) {
		return number{}
	}
	n.digits = mantissa[first:]
	n.exponent += int64(point - first)
	if first > point {
		n.exponent++
	}
	return n
}

func parseExponent(text []byte) (e int64) {
	negative := false
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		negative, text = text[0] == '-', text[1:]
	}
	for _, c := range text {
		e = min(10*e+int64(c-'0'), farExponent)
	}
	if negative {
		return -e
	}
	return e
}

// compare returns -1, 0 or 1.
func (n *number) compare(m *number) int {
	switch {
	case len(n.digits) == 0 && len(m.digits) == 0:
		return 0
	case len(n.digits) == 0:
		return sign(!m.negative)
	case len(m.digits) == 0 || n.negative != m.negative:
		return sign(n.negative)
	}
	c := n.compareSize(m)
	if n.negative {
		return -c
	}
	return c
}

// compareSize compares numbers that are not zero, without their signs.
func (n *number) compareSize(m *number) int {
	if n.exponent != m.exponent {
		return sign(n.exponent < m.exponent)
	}
	i, j := 0, 0
	for i < len(n.digits) || j < len(m.digits) {
		var a, b byte
		a, i = digit(n.digits, i)
		b, j = digit(m.digits, j)
		if a != b {
			return sign(a < b)
		}
	}
	return 0
}

// digit returns the digit at i, past a point, and where the one after it is. Behind the last
// one there are zeros.
func digit(digits []byte, i int) (d byte, next int) {
	if i < len(digits) && digits[i] == '.' {
		i++
	}
	if i >= len(digits) {
		return '0', i
	}
	return digits[i], i + 1
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}
