// The few containers the emulator needs, over malloc: no C++ runtime library is linked in.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace tcf_emulator {
// A growable array of plain structures.
template <class T>
struct Array {
  T* data = nullptr;
  size_t size = 0, capacity = 0;

  T& operator[](size_t i) { return data[i]; }
  const T& operator[](size_t i) const { return data[i]; }
  T* begin() { return data; }
  T* end() { return data + size; }
  void clear() { size = 0; }
  void release() {
    free(data);
    data = nullptr;
    size = capacity = 0;
  }
  void reserve(size_t wanted) {
    if (wanted <= capacity) return;
    capacity = wanted < 2 * capacity ? 2 * capacity : wanted;
    data = static_cast<T*>(realloc(static_cast<void*>(data), capacity * sizeof(T)));
    if (!data) abort();
  }
  T& push(const T& value) {
    if (size == capacity) reserve(size + 16);
    return data[size++] = value;
  }
  // Of that many elements, every byte 0.
  void zeros(size_t count) {
    clear();
    reserve(count);
    size = count;
    if (count) memset(static_cast<void*>(data), 0, count * sizeof(T));
  }
};

// Where in an array the element of a key is; keys are never 0.
struct Index {
  struct Slot { uint64_t key; uint32_t value; };
  Array<Slot> slots;
  size_t used = 0;

  void clear() {
    slots.zeros(slots.size);
    used = 0;
  }
  // The value of `key`; `fresh` when it is new, which it then is no longer.
  uint32_t& find(uint64_t key, uint32_t fresh) {
    if (2 * used >= slots.size) grow();
    Slot* slot = place(key);
    if (slot->key != key) {
      *slot = {key, fresh};
      used++;
    }
    return slot->value;
  }

 private:
  Slot* place(uint64_t key) {
    size_t i = (key * 0x9e3779b97f4a7c15ull >> 20) & (slots.size - 1);
    while (slots[i].key && slots[i].key != key) i = (i + 1) & (slots.size - 1);
    return &slots[i];
  }
  void grow() {
    Array<Slot> old = slots;
    slots = {};
    slots.zeros(old.size ? 2 * old.size : 256);
    for (Slot& s : old)
      if (s.key) *place(s.key) = s;
    old.release();
  }
};

// Sorts, and drops what occurs twice; how many are left.  For the few numbers of one request.
inline int distinct(uint64_t* v, int n) {
  for (int i = 1; i < n; i++) {  // mostly in order already
    uint64_t x = v[i];
    int j = i;
    for (; j && v[j - 1] > x; j--) v[j] = v[j - 1];
    v[j] = x;
  }
  int m = 0;
  for (int i = 0; i < n; i++)
    if (!i || v[i] != v[m - 1]) v[m++] = v[i];
  return m;
}
}  // namespace tcf_emulator
