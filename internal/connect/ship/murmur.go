package ship

import (
	"encoding/binary"
	"math/bits"
)

// murmur3 is MurmurHash3_x64_128.
func murmur3(data []byte, seed uint64) (h1, h2 uint64) {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	h1, h2 = seed, seed
	length := uint64(len(data))
	for ; len(data) >= 16; data = data[16:] {
		h1 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(data)*c1, 31) * c2
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(data[8:])*c2, 33) * c1
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var tail [16]byte
	copy(tail[:], data)
	h1 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(tail[:])*c1, 31) * c2
	h2 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(tail[8:])*c2, 33) * c1
	h1, h2 = h1^length, h2^length
	h1 += h2
	h2 += h1
	h1, h2 = mix(h1), mix(h2)
	h1 += h2
	return h1, h2 + h1
}

func mix(k uint64) uint64 {
	k ^= k >> 33
	k *= 0xff51afd7ed558ccd
	k ^= k >> 33
	k *= 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}

// appendUUID appends the hash of a document in the form of a UUID.
func appendUUID(dst, document []byte) []byte {
	const seed = 42
	h1, h2 := murmur3(document, seed)
	for i := range 8 { // numbers of 16 bits, the low ones first
		if i >= 2 && i <= 5 {
			dst = append(dst, '-')
		}
		h := h1
		if i >= 4 {
			h = h2
		}
		n := uint16(h >> (i % 4 * 16))
		const digits = "0123456789abcdef"
		dst = append(dst, digits[n>>12], digits[n>>8&15], digits[n>>4&15], digits[n&15])
	}
	return dst
}
