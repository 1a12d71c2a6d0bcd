package httpsig

import (
	"encoding/asn1"
	"errors"
	"math/big"
)

const halfECDSA = 32 // of a signature of P-256: r and s have as many bytes each

// toASN1 replaces r and s, 32 bytes each (RFC 9421 section 3.3.4), by the sequence of two
// integers that package signing takes.
func toASN1(raw []byte) []byte {
	out := make([]byte, 2, len(raw)+8)
	out[0] = 0x30
	for _, half := range [][]byte{raw[:halfECDSA], raw[halfECDSA:]} {
		for len(half) > 1 && half[0] == 0 {
			half = half[1:]
		}
		sign := half[0] >> 7
		out = append(out, 0x02, byte(len(half))+sign)
		if sign == 1 {
			out = append(out, 0)
		}
		out = append(out, half...)
	}
	out[1] = byte(len(out) - 2)
	return out
}

// fromASN1 is the way back, for what a crypto.Signer returns.
func fromASN1(der []byte) ([]byte, error) {
	var pair struct{ R, S *big.Int }
	rest, err := asn1.Unmarshal(der, &pair)
	if err != nil || len(rest) > 0 || pair.R.Sign() <= 0 || pair.S.Sign() <= 0 || pair.R.BitLen() > 8*halfECDSA || pair.S.BitLen() > 8*halfECDSA {
		return nil, errors.New("httpsig: Config.Signer made no ECDSA signature of P-256")
	}
	raw := make([]byte, 2*halfECDSA)
	pair.R.FillBytes(raw[:halfECDSA])
	pair.S.FillBytes(raw[halfECDSA:])
	return raw, nil
}
