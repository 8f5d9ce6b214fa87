/* The C interface of every program that snnc emits: one shared library, one session a call of snnc_open.
 *
 * Functions return 0 (or a pointer) when all went well; otherwise -1 (or NULL), and snnc_last_error says why.
 * No C++ exception leaves the library. A session belongs to one thread at a time.
 *
 * Tensors have names (x0, c0_weight, labels, y0_record …) that project.json explains. Their data is dense, row-major, and in
 * the model's own orientation: inputs and records [steps][batch][n], dense weights [outputs][inputs]. How the target stores
 * them (event lists, tiles, columns) is the library's business.
 */
#ifndef SNNC_ABI_H
#define SNNC_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SNNC_ABI_VERSION 2
#define SNNC_MAX_RANK 8

/* What a tensor is for. */
enum snnc_role {
  SNNC_INPUT = 0,     /* set before snnc_run or snnc_train_step */
  SNNC_RECORD = 1,    /* an output at every step, after snnc_run; after snnc_train_step where the program keeps it */
  SNNC_PARAMETER = 2, /* get and set */
  SNNC_GRADIENT = 3,  /* of the last snnc_train_step, summed over the batch */
  SNNC_STATE = 4,     /* initial states, get and set */
  SNNC_LABEL = 5,     /* class indices, set before snnc_train_step */
  SNNC_SETTING = 6,   /* lr; get and set */
  SNNC_COUNTER = 7,   /* counted since snnc_open; setting one resets it */
  SNNC_RESULT = 8,    /* loss of the last snnc_train_step */
  SNNC_MOMENT = 9,    /* state of the optimiser; get and set */
  SNNC_NEXT = 10 /* x0_next, labels_next …: the input of the step behind the next one, where the program sends for it while it computes;
                         set before snnc_run or snnc_train_step, behind which it is the input, as if it had been set then; the memory
                         that it was set from has to stay as it is until that call returns */
};

enum snnc_type { SNNC_FLOAT32 = 0, SNNC_INT32 = 1 };

typedef struct snnc_tensor {
  const char *name; /* valid until snnc_close */
  int32_t type;
  int32_t role;
  int32_t rank;
  uint64_t shape[SNNC_MAX_RANK];
} snnc_tensor;

typedef struct snnc_session snnc_session;

/* SNNC_ABI_VERSION of the library. */
int32_t snnc_abi_version(void);

/* Opens the project in `folder`, with the weights of its weights.safetensors; NULL on failure. */
snnc_session *snnc_open(const char *folder);

/* Frees the session; NULL is fine. */
void snnc_close(snnc_session *session);

/* Number of tensors, and what tensor `index` is. */
int32_t snnc_tensor_count(snnc_session *session);
int32_t snnc_tensor_info(snnc_session *session, int32_t index, snnc_tensor *info);

/* Copies a whole tensor in or out; `bytes` must be its size. */
int32_t snnc_set_tensor(snnc_session *session, const char *name, const void *data, uint64_t bytes);
int32_t snnc_get_tensor(snnc_session *session, const char *name, void *data, uint64_t bytes);

/* Sets an input [steps][batch][n] to 1 where events are, 0 elsewhere: row r = step * batch + sample has the neurons ids[begin[r]] to
 * ids[begin[r + 1] - 1], each once, ascending; `begin` holds steps * batch + 1 numbers. Programs that take dense inputs only refuse. */
int32_t snnc_set_events(snnc_session *session, const char *name, const uint64_t *begin, uint64_t rows, const uint32_t *ids, uint64_t count);

/* Forward pass of the inputs; fills the records. */
int32_t snnc_run(snnc_session *session);

/* Forward, loss, backward and update; the batch's loss is stored in *loss (which may be NULL). */
int32_t snnc_train_step(snnc_session *session, float *loss);

/* What the session has done so far, as JSON; valid until the next call on this session, NULL on failure. */
const char *snnc_profile(snnc_session *session);

/* Writes the parameters as they are now to a safetensors file, whole or not at all. */
int32_t snnc_save(snnc_session *session, const char *path);

/* The last failure on this thread, "" when there was none. */
const char *snnc_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
