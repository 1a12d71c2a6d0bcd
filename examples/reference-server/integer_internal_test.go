package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWholeNumber(t *testing.T) {
	for number, want := range map[string]int64{
		"7": 7, "-7": -7, "0": 0, "-0": 0, "0.000": 0, "0e999999999999": 0,
		"10.0": 10, "1e2": 100, "1E+2": 100, "1.5e1": 15, "0.1e1": 1, "10e-1": 1, "100000000000000000000000e-21": 100,
		"9007199254740993": 9007199254740993, "9007199254740993.00": 9007199254740993, "900719925474099.3e1": 9007199254740993,
		"9223372036854775807": 1<<63 - 1, "-9.223372036854775808e18": -1 << 63,
	} {
		n, ok := wholeNumber(number)
		require.True(t, ok, number)
		require.Equal(t, want, n, number)
	}
	for _, number := range []string{"0.5", "1.5e0", "15e-1", "1e-1", "1e-999999999999", "10.00000000000000000001", "9007199254740990.5", "9223372036854775808", "1e19", "1e999999999", "1e999999999999999999999"} {
		_, ok := wholeNumber(number)
		require.False(t, ok, number)
	}
}
