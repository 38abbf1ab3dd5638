// Package msgpack carries values between MessagePack and JSON, so that doors
// read and write one of them. Nothing is lost on the way that the other can
// say:
//
//   - Whole numbers from -2^63 to 2^64-1 keep all their digits and stay whole.
//   - A float stays a float with the same value: 1.0 is `1.0`, never `1`.
//   - Texts are UTF-8; maps keep their order, and a name that stands twice.
//
// What JSON cannot say is refused: binary data, extensions, NaN and
// infinities, keys that are no strings, texts that are not UTF-8. A JSON number
// that MessagePack cannot hold becomes the nearest float.
//
// The bytes of the format are read and written by github.com/tinylib/msgp;
// this package only walks over them, and builds no tree.
package msgpack
