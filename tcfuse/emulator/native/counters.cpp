// Requests to memory.  What the lanes of a warp do by one instruction, each for the same time
// since they last met, is one request, as on a GPU.
#include "state.hpp"

namespace tcf_emulator {
void prepare_logs(size_t threads) {
  while (state.logs.size < threads) state.logs.push({});
  for (Array<Logged>& log : state.logs) log.clear();
}

void release_logs() {
  for (Array<Logged>& log : state.logs) log.release();
  state.logs.release();
}

void record(const Logged& access) { state.logs[current->number].push(access); }

static Site& site_of(const Logged& x, bool shared) {
  const uint64_t key = uint64_t(x.pc) << 16 | uint64_t(x.kind) << 8 | x.bytes;
  const uint32_t number = state.site_index.find(key, uint32_t(state.sites.size));
  if (number == state.sites.size)
    state.sites.push({x.pc, shared, x.kind, x.bytes, int32_t(x.buffer), 0, 0, 0, 0});
  return state.sites[number];
}

// Global memory moves sectors of 32 bytes; as many as the distinct addresses fill are ideal.
static void count_sectors(const Logged* const* x, int n, Site& site) {
  uint64_t units[64];
  int m = 0;
  const uint64_t bytes = x[0]->bytes;
  Buffer& b = state.buffers[x[0]->buffer];
  const bool writes = Access(x[0]->kind) != Access::READ;
  for (int i = 0; i < n; i++) units[m++] = uint64_t(x[i]->offset) >> 5;  // aligned: within one sector
  m = distinct(units, m);
  const uint8_t touched = writes ? WRITTEN_NOW | WRITTEN_EVER : READ_NOW | READ_EVER;
  for (int i = 0; i < m; i++) b.sectors[units[i]] |= touched;
  b.sectors_requested[writes] += m;
  site.transactions += m;
  for (int i = 0; i < n; i++) units[i] = uint64_t(x[i]->offset);
  site.ideal += (distinct(units, n) * bytes + 31) / 32;
}

// Shared memory serves 128 bytes' worth of lanes at a time (a warp by 4 bytes, half a warp by 8,
// a quarter by 16); each takes as many wavefronts as the most loaded of the 32 banks, 4 bytes
// wide, has distinct words.
static void count_wavefronts(const Logged* const* x, const uint8_t* lane, int n, Site& site) {
  const unsigned bytes = x[0]->bytes, lanes = bytes <= 4 ? 32 : 128 / bytes;
  for (int i = 0; i < n;) {
    uint64_t words[32];
    int m = 0, load[32] = {}, most = 0;
    const unsigned phase = lane[i] / lanes;
    for (; i < n && lane[i] / lanes == phase; i++)
      for (int64_t w = x[i]->offset >> 2; w <= (x[i]->offset + bytes - 1) >> 2; w++)
        words[m++] = w;
    m = distinct(words, m);
    for (int k = 0; k < m; k++) {
      const int here = ++load[words[k] & 31];
      if (here > most) most = here;
    }
    site.transactions += most;
    site.ideal++;
  }
}

// Accesses by one instruction, by lanes in ascending order.  Those to different buffers are
// requests of their own.
static void count_request(const Logged* const* all, const uint8_t* lane, int count) {
  const Logged* x[32];
  uint8_t lanes[32];
  uint32_t left = count == 32 ? ~0u : (1u << count) - 1;
  while (left) {
    const Logged* first = all[__builtin_ctz(left)];
    int n = 0;
    for (int i = 0; i < count; i++)
      if (left >> i & 1 && all[i]->buffer == first->buffer) {
        x[n] = all[i];
        lanes[n++] = lane[i];
        left &= ~(1u << i);
      }
    const bool shared = state.buffers[first->buffer].flags & SHARED;
    Site& site = site_of(*first, shared);
    site.requests++;
    site.lanes += n;
    if (shared)
      count_wavefronts(x, lanes, n, site);
    else
      count_sectors(x, n, site);
  }
}

static bool same_instruction(const Logged& a, const Logged& b) {
  return a.pc == b.pc && a.kind == b.kind && a.bytes == b.bytes;
}

// Whether all lanes did the same, one after the other: the usual case, which needs no search.
static bool is_uniform(const Array<Logged>* logs, unsigned lanes) {
  for (unsigned l = 1; l < lanes; l++) {
    if (logs[l].size != logs[0].size) return false;
    for (size_t i = 0; i < logs[0].size; i++)
      if (!same_instruction(logs[l][i], logs[0][i])) return false;
  }
  return true;
}

// Lanes that went different ways: the k-th access of each by one instruction belong together.
static void count_divergent(const Array<Logged>* logs, unsigned lanes) {
  struct Turn { const Logged* x[32]; uint8_t lane[32]; uint32_t count; };
  static Array<Turn> turns;
  static Index turn_index, times;
  turns.clear();
  turn_index.clear();
  for (unsigned l = 0; l < lanes; l++) {
    times.clear();
    for (size_t i = 0; i < logs[l].size; i++) {
      const Logged& x = logs[l].data[i];
      const uint64_t key = uint64_t(x.pc) << 11 | uint64_t(x.kind) << 9 | x.bytes;
      uint32_t& time = times.find(key, 0);
      const uint32_t turn = turn_index.find(key << 16 | time++ % 65536, uint32_t(turns.size));
      if (turn == turns.size) turns.push({});
      Turn& t = turns[turn];
      t.x[t.count] = &x;
      t.lane[t.count++] = uint8_t(l);
    }
  }
  for (const Turn& t : turns) count_request(t.x, t.lane, int(t.count));
}

void count_requests(unsigned warp) {
  Array<Logged>* logs = &state.logs[warp * 32];
  const size_t left = state.fibers.size - warp * 32;
  const unsigned lanes = left < 32 ? unsigned(left) : 32;
  if (is_uniform(logs, lanes)) {
    static const uint8_t all[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                    11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                    22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    const Logged* x[32];
    for (size_t i = 0; i < logs[0].size; i++) {
      for (unsigned l = 0; l < lanes; l++) x[l] = &logs[l][i];
      count_request(x, all, int(lanes));
    }
  } else {
    count_divergent(logs, lanes);
  }
  for (unsigned l = 0; l < lanes; l++) logs[l].clear();
}

void count_all_requests() {
  for (unsigned w = 0; w < state.warps.size; w++) count_requests(w);
}
}  // namespace tcf_emulator
