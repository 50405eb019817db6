/* Shapes of the outputs, as far as they follow from what is known of the inputs.
 *
 * An output is described only when each of its dimensions is a number or has the name of an
 * input's dimension: a made-up name could make two different sizes look equal. */
#include "tcf_region.h"

typedef struct {
  int64_t number;     /* -1: not known */
  const char *symbol; /* "" or NULL: none */
} KnownDim;

/* Dimensions of input `k`; left unknown when the input has no shape of the expected rank. */
static OrtStatus *known_dims(const OrtShapeInferContext *context, size_t k, size_t rank,
                             KnownDim *dims) {
  OrtTensorShape *shape = NULL; /* lent */
  size_t found = 0;
  int64_t numbers[rank + 1];
  const char *symbols[rank + 1];
  TCF_TRY(ORT(ShapeInferContext_GetInputTypeShape)(context, k, &shape));
  if (!shape) return NULL;
  TCF_TRY(ORT(GetDimensionsCount)(shape, &found));
  if (found != rank) return NULL;
  TCF_TRY(ORT(GetDimensions)(shape, numbers, rank));
  TCF_TRY(ORT(GetSymbolicDimensions)(shape, symbols, rank));
  for (size_t d = 0; d < rank; d++) dims[d] = (KnownDim){numbers[d], symbols[d]};
  return NULL;
}

static OrtStatus *fill_shape(OrtTensorShape *shape, int type, const int64_t *numbers,
                             const char **symbols, size_t rank) {
  TCF_TRY(ORT(SetTensorElementType)(shape, type));
  TCF_TRY(ORT(SetDimensions)(shape, numbers, rank));
  return rank ? ORT(SetSymbolicDimensions)(shape, symbols, rank) : NULL;
}

static OrtStatus *set_output(const OrtShapeInferContext *context, size_t k, int type,
                             const int64_t *numbers, const char **symbols, size_t rank) {
  OrtTensorShape *shape;
  TCF_TRY(ORT(CreateTensorTypeAndShapeInfo)(&shape));
  OrtStatus *status = fill_shape(shape, type, numbers, symbols, rank);
  if (!status) status = ORT(ShapeInferContext_SetOutputTypeShape)(context, k, shape);
  ORT(ReleaseTensorTypeAndShapeInfo)(shape);
  return status;
}

OrtStatus *tcf_infer(const OrtCustomOp *op, OrtShapeInferContext *context) {
  const TcfRegion *region = ((const TcfOp *)op)->region;
  KnownDim inputs[region->n_input_dims + 1];
  int64_t sizes[region->n_sizes + 1], numbers[region->n_output_dims + 1];
  const char *symbols[region->n_output_dims + 1];
  uint64_t unknown = (uint64_t)1 << 63;

  for (int d = 0; d < region->n_input_dims; d++) inputs[d] = (KnownDim){-1, NULL};
  for (int k = 0, d = 0; k < region->n_inputs; d += region->ports[k++].rank)
    TCF_TRY(known_dims(context, (size_t)k, (size_t)region->ports[k].rank, inputs + d));

  /* An unknown size counts as 1 below, which is harmless, and marks what depends on it. */
  for (int s = 0; s < region->n_sizes; s++) {
    int from = region->origins[s];
    int known = from < 0 || inputs[from].number >= 0;
    sizes[s] = from >= 0 && known ? inputs[from].number : 1;
    if (!known && s < 63) unknown |= (uint64_t)1 << s;
  }
  if (region->derive) region->derive(sizes);
  region->shape(sizes, numbers);

  const TcfPort *ports = region->ports + region->n_inputs;
  for (int k = 0, d = 0; k < region->n_outputs; d += ports[k++].rank) {
    int described = 1;
    for (int e = d; e < d + ports[k].rank; e++) {
      int size = region->dim_sizes[e], from = size < 0 ? -1 : region->origins[size];
      symbols[e] = "";
      if (!(region->dim_needs[e] & unknown) && numbers[e] >= 0) continue;
      numbers[e] = -1;
      if (from >= 0 && inputs[from].symbol) symbols[e] = inputs[from].symbol;
      described &= symbols[e][0] != 0;
    }
    if (described)
      TCF_TRY(set_output(context, (size_t)k, ports[k].element_type, numbers + d, symbols + d,
                         (size_t)ports[k].rank));
  }
  return NULL;
}
